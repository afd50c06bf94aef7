// SPDX-License-Identifier: Apache-2.0
// From the attributes that the host wants to put back to one request of Kafka. Pure: no I/O.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "driftd/sdk/extensions.hpp"
#include "kafka/alter_wire.hpp"

namespace driftd::kafka {

/// What puts the attributes of one resource back, or why nothing does.
struct AlterPlan {
  AlterRequest request, undo;
  std::string impossible;  ///< which attribute cannot be set, and why; empty if all can
  std::string instead;     ///< the command that a person would use for it; empty: there is none
};

/// Plans all changes of the resource, or none: the first one that cannot be set makes the plan impossible. Throws
/// INVALID for a path or value that the host may not send. `server` is named in the commands.
AlterPlan plan_alteration(const sdk::Identity& id, std::span<const sdk::Change> changes, const std::string& server);

/// Returns the line of kafka-configs.sh that does what the request does.
std::string alter_command(const AlterRequest& request, const std::string& server);

/// Returns a value of a body as Kafka writes it: a list becomes one text with the separator of its key. Empty if Kafka
/// has no such value (an object, null).
std::optional<std::string> value_text(const std::string& key, const nlohmann::json& value);

}  // namespace driftd::kafka
