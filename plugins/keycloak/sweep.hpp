// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "keycloak/event_feed.hpp"
#include "keycloak/reader.hpp"

namespace driftd::keycloak {

/// A full list of all realms: the first one, the regular one below the admin events, and the only one where they cannot
/// be seen. Lives for one call of refresh.
class Sweep {
 public:
  Sweep(sdk::Call& call, AdminApi& api, const Settings& settings, Index& index)
      : call_(call),
        api_(api),
        settings_(settings),
        index_(index),
        reader_(call, api, settings, index) {}

  /// Reads the realms, and begins to follow their admin events before anything else is listed, so that what changes
  /// during the list is noticed after it. `feed` is where they are followed now.
  void begin(const EventFeed& feed);
  /// Emits the kinds, each with COMPLETE or with the reasons why it is not. Returns false if the host asked to stop.
  bool emit(const std::vector<std::string>& kinds);

  /// Where to follow the events of each realm from; to be used only after emit().
  std::map<std::string, EventFeed::Start> starts() { return std::move(starts_); }
  bool whole() const { return whole_; }           ///< every kind was listed whole
  std::size_t digest() const { return digest_; }  ///< of everything that was emitted
  std::size_t blind_realms() const { return blind_.size(); }
  /// Returns why events of some realm cannot be seen; empty if those of all can.
  std::string blind_text() const;

 private:
  void begin_realm(const std::string& name, const EventFeed& feed);
  bool emit_kind(const std::string& kind);
  bool emit_realms();
  bool emit_record(const sdk::Record& record);
  /// Notes a failure of one realm that leaves the kind incomplete. Rethrows one that concerns everything.
  void note(const sdk::Failure& failure, const std::string& kind);
  /// Says once for each kind that its changes are only found by full lists.
  void tell_blind(const std::string& kind);

  sdk::Call& call_;
  AdminApi& api_;
  const Settings& settings_;
  Index& index_;
  Reader reader_;
  std::vector<RealmView> realms_;
  std::map<std::string, EventFeed::Start> starts_;
  std::map<std::string, std::int64_t> reconciled_ms_;  ///< time of the last event that was acted on, by realm
  std::map<std::string, std::string> blind_;           ///< realm → why its events cannot be seen
  std::vector<sdk::Diagnostic> realm_failures_;        ///< realms that could not be read at all
  std::vector<std::string> unreadable_;                ///< names of those
  std::uint64_t count_ = 0;                            ///< records of the current kind
  bool whole_ = true, kind_whole_ = true;
  std::size_t digest_ = 0;
};

}  // namespace driftd::keycloak
