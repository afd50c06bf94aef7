// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "keycloak/realm_feed.hpp"

namespace driftd::keycloak {

/// How far the admin events of every realm were read: what a cursor says, and what it cannot say. Thread-safe, no I/O.
class EventFeed {
 public:
  using Steady = std::chrono::steady_clock;

  /// `scope` is a text that differs if cursors of two instances do not mean the same.
  EventFeed(std::string scope, std::chrono::milliseconds overlap);

  /// What a full list found out about one realm before it listed anything.
  struct Start {
    std::string uuid;               ///< of the realm
    std::optional<RealmFeed> feed;  ///< empty: its events cannot be seen
  };
  /// Begins again after a full list. A realm that was read further meanwhile keeps its place.
  void start(std::map<std::string, Start> realms, Steady::time_point began);
  /// Takes the places from a cursor of an earlier process. Returns false if it is none of this scope.
  bool restore(const std::string& cursor);
  /// Returns the cursor; empty if nothing was listed yet, or if it would be larger than a cursor may be.
  std::string cursor() const;
  /// Returns a text that changes whenever an event was seen.
  std::string stamp() const;

  bool ready() const;     ///< start() or restore() was called
  bool restored() const;  ///< only restore(): the UUIDs of the resources are not known
  /// Returns the realms whose events are read (`blind` false) or cannot be seen (true).
  std::vector<std::string> realms(bool blind) const;
  /// Returns a copy of the realm's place; empty if it is blind or not known.
  std::optional<RealmFeed> place(const std::string& realm) const;
  /// Notes that these events of the realm were acted on; see RealmFeed.
  void commit(const std::string& realm, const std::vector<AdminEvent>& events, std::int64_t now_ms, bool reconciled);

  void settle(const std::string& realm, std::int64_t now_ms);  ///< see RealmFeed

  /// Demands that the next refresh lists everything, and why. The realm's events are not read until then.
  void require_list(const std::string& realm, const std::string& why);
  /// Returns why everything must be listed; empty if it need not be.
  std::string list_reason() const;
  /// Returns how long ago the last full list began.
  Steady::duration list_age(Steady::time_point now) const;

  /// Notes that all realms were asked for their events just now.
  void note_round(Steady::time_point now);
  /// Returns true if that was at most `max_age` ago and nothing must be listed.
  bool is_current(Steady::time_point now, Steady::duration max_age) const;

 private:
  const std::string scope_;  ///< digest of the scope, as cursors have it
  const std::chrono::milliseconds overlap_;
  /// Renders the cursor; `seen`: with the events that the next question returns again. The caller holds the mutex.
  std::string render(bool seen) const;
  mutable std::mutex mutex_;  ///< guards all below
  std::map<std::string, Start> realms_;
  std::string list_reason_;
  Steady::time_point listed_{}, round_{};
  bool ready_ = false, restored_ = false;
};

}  // namespace driftd::keycloak
