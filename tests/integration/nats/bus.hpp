// SPDX-License-Identifier: Apache-2.0
// Helpers of this folder's tests: the NATS sink behind a real relay, against a real nats-server.
#pragma once

#include <gtest/gtest.h>
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "sinks/nats/nats_sink.hpp"
#include "support/nats.hpp"
#include "support/relay_runner.hpp"
#include "support/sink_events.hpp"

namespace driftd::test {

/// The regular check comes once a minute, as in production. So what a test finds sooner was not found by that check.
inline constexpr std::chrono::milliseconds kEachMinute{60'000};

inline RelayRunner::MakeSink nats_sink(sinks::NatsSettings settings) {
  return [settings](auto core, auto io, const Clock&) { return sinks::open_nats("bus", settings, core, io); };
}

inline sinks::NatsSettings at(const NatsServer& server) {
  sinks::NatsSettings settings;
  settings.servers = {server.url()};
  settings.ack_wait = std::chrono::milliseconds(2'000);
  return settings;
}

inline sinks::NatsSettings without_views(sinks::NatsSettings settings) {
  settings.views = false;
  return settings;
}

/// The ids of the events themselves, without their views: a view has its event's id with a suffix. An event that is
/// stored twice counts twice.
inline std::multiset<std::string> canonical_ids(const std::vector<NatsReceived>& messages) {
  std::multiset<std::string> out;
  for (const auto& message : messages) {
    if (message.id == message.ce_id) out.insert(message.ce_id);
  }
  return out;
}

/// Every change that a backend's subject can end with, with the event type.
inline const std::vector<std::pair<std::string, core::ChangeType>>& all_changes() {
  static const std::vector<std::pair<std::string, core::ChangeType>> changes = {
      {"created", core::ChangeType::created},
      {"updated", core::ChangeType::updated},
      {"deleted", core::ChangeType::deleted},
      {"credentials.rotated", core::ChangeType::credential_rotated},
      {"endpoint.changed", core::ChangeType::endpoint_changed},
      {"health.changed", core::ChangeType::health_changed},
      {"config.updated", core::ChangeType::config_drift_detected},
      {"drift.decided", core::ChangeType::unspecified}};
  return changes;
}

/// Adds one event of each of all_changes(), numbered from 1.
inline void add_all_changes(RelayRunner& runner) {
  std::int64_t number = 0;
  for (const auto& [what, type] : all_changes()) runner.add(sample_stored(++number, what, type));
}

inline bool delivered(RelayRunner& runner, std::int64_t count) {
  return eventually([&] { return runner.view().delivered >= count; }, std::chrono::seconds(40));
}

/// Event number `n`, about topic `t<topic>`. Events of one topic are sent one after the other.
inline core::StoredEvent event_of_topic(std::int64_t n, std::int64_t topic) {
  core::StoredEvent event = sample_stored(n);
  event.key = "0123456789abcdef/topic/t" + std::to_string(topic);
  return event;
}

/// Adds the events `from` to `to`, each about a topic of its own.
inline void add(RelayRunner& runner, std::int64_t from, std::int64_t to) {
  for (std::int64_t n = from; n <= to; ++n) runner.add(sample_stored(n));
}

/// The numbers of events 1 to `count` of which the stream lacks the event or, if `views`, a view.
inline std::vector<std::int64_t> missing(const NatsServer& server, std::int64_t count, bool views = false) {
  std::set<std::string> there;
  for (const auto& message : stream_contents(server.url(), "DRIFT")) there.insert(message.id);
  std::vector<std::int64_t> out;
  for (std::int64_t n = 1; n <= count; ++n) {
    const std::string id = sample_stored(n).stamp.id;
    const bool whole = there.count(id) != 0 && (!views || (there.count(id + "_t") != 0 && there.count(id + "_s") != 0));
    if (!whole) out.push_back(n);
  }
  return out;
}

/// Waits until nothing is missing, for well below the minute after which the regular check comes.
inline testing::AssertionResult all_there(const NatsServer& server, RelayRunner& runner, std::int64_t count,
                                          bool views = false) {
  std::vector<std::int64_t> lost;
  const auto nothing_lost = [&] { return (lost = missing(server, count, views)).empty(); };
  if (eventually(nothing_lost, std::chrono::seconds(30))) return testing::AssertionSuccess();
  return testing::AssertionFailure() << lost.size() << " of " << count << " lost, the first is " << lost.front() << "; "
                                     << runner.view().state << "; " << runner.view().last_error;
}

}  // namespace driftd::test
