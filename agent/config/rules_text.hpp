// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/judge/rules.hpp"

namespace driftd::config {

/// Returns the rules of a backend as the audit log names them: class defaults, policy, ignore rules, and the paths of
/// expectations. Expected values are left out, because one may be a secret.
core::Value rules_json(const core::Rules& rules);

}  // namespace driftd::config
