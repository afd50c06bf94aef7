// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/task.hpp"
#include "core/event/event.hpp"

namespace driftd::sinks {

/// A link that decides about a drift.
struct ChatLink {
  std::string action;  ///< approve | reject | ignore | claim
  std::string url;
};

/// A drift that a message lists.
struct ChatDrift {
  std::string id, ref, backend, resource, cls;
  std::string message;    ///< `Field … changed from … to …`, one line for each change
  std::string actions{};  ///< what can be decided: APPROVE REJECT IGNORE
  std::vector<ChatLink> links{};
};

/// Returns the drifts with their links, which are valid by then. The first text is the id of the message.
using ChatLinkMaker = std::function<Task<Result<std::vector<ChatDrift>>>(std::string, std::vector<ChatDrift>)>;

/// What a chat message says, before it is written in a format. All texts are valid UTF-8 without control characters
/// except the line feed.
struct ChatMessage {
  std::string id, what, kind, title, backend, agent, cluster, time, actions;
  std::string text;               ///< what is said if no drifts are listed
  std::vector<ChatDrift> drifts;  ///< oldest first
  std::size_t count = 0;          ///< drifts that wait, listed or not
  std::string remark;             ///< what is said after the drifts: since when nobody has decided, and the like
  std::string find_rest;          ///< the command that shows those that are not listed
};

/// Returns what a chat message says about an event: a notification with its drifts, any other event with its title and
/// its changes. `corrupt` if the payload is not an event.
Result<ChatMessage> message_of(const core::StoredEvent& event);

}  // namespace driftd::sinks
