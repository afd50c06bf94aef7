// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "core/judge/judge.hpp"

namespace driftd::core {

/// judge() for a resource whose stored baseline is of an older schema revision. `baseline` is that baseline as its
/// provider converted it to the current revision. Paths keep baseline and drift. A digest is bound to its path and
/// normal form, so an attribute whose digest moved or whose rule changed is filled in from the reading. The resource is
/// unknown if `baseline` is not a JSON object. Pure; any thread. [judge.cpp]
Judgement judge_upgraded(const JudgeContext& context, const StoredResource& stored, const Present& seen,
                         const std::string& baseline);

}  // namespace driftd::core
