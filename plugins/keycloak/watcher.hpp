// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "keycloak/event_feed.hpp"
#include "keycloak/reader.hpp"

namespace driftd::keycloak {

/// What one question for the admin events of a realm brought.
struct Poll {
  std::vector<AdminEvent> events;  ///< all that the server returned
  std::vector<AdminEvent> fresh;   ///< those that were not seen before
  std::set<Touch> touches;         ///< what they may have changed, and what is read once more
  std::int64_t server_ms = 0;      ///< when it was asked, by the server's clock
  std::string lost;                ///< why events may be missing; empty: none are
};

/// Asks for the admin events of realms. Lives for one call.
class EventPoller {
 public:
  EventPoller(sdk::Call& call, AdminApi& api, const Settings& settings) : call_(call), api_(api), settings_(settings) {}
  /// Asks for what happened since `place`: one request, if the answer fits into one page. Throws as AdminApi, DENIED
  /// without `view-events`, NOT_FOUND if the realm is gone.
  Poll poll(const std::string& realm, const RealmFeed& place);
  /// Returns a place that begins now, by the server's clock; what happened just before counts as seen.
  RealmFeed begin(const RealmView& realm);

 private:
  std::vector<AdminEvent> events_since(const std::string& realm, std::int64_t from_ms);

  sdk::Call& call_;
  AdminApi& api_;
  const Settings& settings_;
};

/// Follows the admin events of all realms: reads again what they name and emits it. Lives for one call of watch.
class Watcher {
 public:
  Watcher(sdk::Call& call, AdminApi& api, const Settings& settings, Index& index, EventFeed& feed)
      : call_(call),
        api_(api),
        settings_(settings),
        index_(index),
        feed_(feed) {}
  /// Returns when the call is cancelled. Throws what AdminApi throws: the agent then starts it again.
  void run();
  /// Asks every realm once. Returns false if the host asked to stop.
  bool round();

 private:
  bool follow(const std::string& realm);
  /// Reads what the events name, emits it, and notes the events. Returns false if the host asked to stop.
  bool apply(const std::string& realm, const Poll& poll);
  bool apply_touch(Reader& reader, const std::string& realm, const Touch& touch);
  bool sweep(Reader& reader, const std::string& realm, const std::string& kind);
  bool touch_client(Reader& reader, const std::string& realm, const std::string& uuid);
  bool touch_role(Reader& reader, const std::string& realm, const Touch& touch);
  /// Looks whether a blind realm shows its events again.
  void look_at_blind(const std::string& realm);
  /// Emits what was read, or that `old_id` is gone; a resource with another id than before is both.
  bool emit(const std::string& kind, const std::string& realm, const std::string& uuid, const std::string& old_id,
            std::optional<Found> now);
  bool emit_record(sdk::Record record);
  bool emit_gone(const std::string& kind, const std::string& id);
  bool drop_roles_of(const std::string& realm, const std::string& client_id);
  void ask_for_list(const std::string& realm, const std::string& why);

  sdk::Call& call_;
  AdminApi& api_;
  const Settings& settings_;
  Index& index_;
  EventFeed& feed_;
  std::map<std::string, std::string> writer_;  ///< metadata of what is read because of the current touch
};

}  // namespace driftd::keycloak
