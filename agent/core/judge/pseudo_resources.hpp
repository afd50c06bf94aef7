// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/judge/stages.hpp"

// Parts of judge_identity(), judge_scope() and judge_claims(). The drifts of pseudo-resources are always manual, and
// are decided before anything that depends on them is judged. No other room includes this.
namespace driftd::core {

/// Returns {"<member>": value}.
Value object_of(std::string_view member, Value value);
Value list_of(const std::vector<std::string>& texts);
/// Returns a member of the stored baseline as JSON text. Empty if there is none.
std::optional<std::string> baseline_member(const StoredResource& stored, std::string_view member);
/// Opens, updates or ends the one drift of a pseudo-resource. Empty `change`: there is nothing to ask about. If
/// `rebased` is true, a drift that is open is superseded instead of reverted.
Judgement judge_member(const std::string& backend_uid, const StoredResource& stored, ChangeClass cls,
                       std::optional<Change> change, Nanos now_ns, Judgement out, bool rebased = false);

}  // namespace driftd::core
