// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "core/judge/judge.hpp"

namespace driftd::core {

/// judge() for a resource whose stored baseline is of an older schema revision and was converted by its provider:
/// `baseline` is it in the form of the current one. Paths keep baseline and drift; what holds a digest at another path
/// or under another reading is filled from what is seen (a digest is of its path and normal form). Unknown, when it is
/// no JSON object. Pure; any thread.
Judgement judge_upgraded(const JudgeContext& context, const StoredResource& stored, const Present& seen,
                         const std::string& baseline);

}  // namespace driftd::core
