// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "base/task.hpp"

namespace driftd::core {

/// A link in a notification that decides about one drift (docs/operate.md). The store has the hash of its token; the
/// token itself is in the message only.
struct DecisionLink {
  std::string hash;            ///< SHA-256 of the token, in hex
  std::string event_id, sink;  ///< the notification, and the sink that it was sent to
  std::string drift_id;
  std::string digest;  ///< beginning of the binding() of the value that the message shows
  std::string action;  ///< approve | reject | ignore | claim
  Nanos created_ns = 0, expires_ns = 0;
  Nanos used_ns = 0;  ///< 0: it was not used yet
};

/// Begins the name of whoever decides by a link. Nobody knows who that is, so all of them count as one person.
inline constexpr std::string_view kLinkActor = "link of notification ";
inline constexpr std::string_view kTyped = "typed:";  ///< begins Caller::claimed: a name that somebody gave on a page
inline bool is_link_actor(std::string_view actor) { return actor.starts_with(kLinkActor); }

/// The links that were given out. Threads and guarantees as Store.
class LinkStore {
 public:
  virtual ~LinkStore() = default;
  /// Adds links before their message is sent, and deletes those that expired more than a day ago.
  virtual Task<Status> add_links(std::vector<DecisionLink> links) = 0;
  /// Returns the link of a token's hash. Empty if there is none.
  virtual Task<Result<std::optional<DecisionLink>>> find_link(std::string hash) = 0;
};

}  // namespace driftd::core
