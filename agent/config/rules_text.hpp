// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "core/enforce/settings.hpp"
#include "core/judge/rules.hpp"

namespace driftd::config {

/// Returns what stands for an expected value in the audit log. It must tell values apart and reveal none.
using ValueMark = std::function<std::string(const std::string& value)>;
/// Returns the rules of a backend as the audit log names them: class defaults, policy, ignore rules, the paths of
/// expectations, and within which bounds values may be put back. Expected values are left out, because one may be a
/// secret; their marks show that one changed. There is no `enforce` if nothing may be put back.
core::Value rules_json(const core::Rules& rules, const core::EnforceSettings& enforce, const ValueMark& mark);

}  // namespace driftd::config
