// SPDX-License-Identifier: Apache-2.0
// What sink plugins (plugin-api/include/driftd/sink.h) say and are given, as values.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "core/ports/attempt.hpp"

namespace driftd::core {

/// The content types of a body that this agent can produce (DRIFTD_BODY_* of sink.h).
inline constexpr const char* kCloudEventsJson = "application/cloudevents+json";
inline constexpr const char* kProtobuf = "application/protobuf";

/// What a sink plugin reports about itself, besides its id, version and settings.
struct SinkPluginInfo {
  std::string title;                  ///< for people; empty: none
  std::string content_type;           ///< of the bodies that it gets: the first of its list that we can produce
  std::size_t max_events = 1;         ///< of one batch
  std::size_t max_bytes = 16u << 20;  ///< of the bodies of one batch; a larger event comes alone
  bool forever = true;                ///< RetryPolicy::forever
  bool has_flush = false;             ///< flush() is worth a round trip
};

/// One event as a sink plugin gets it.
struct PluginEvent {
  std::string id, source, type, subject;  ///< CloudEvents attributes
  std::string topic, order_key;           ///< subject of a broker; never two events of one key under way
  std::uint64_t sequence = 0, incarnation = 0;
  std::int64_t time_ns = 0;  ///< of the commit, since the epoch
  bool replay = false, agent_event = false;
  std::string content_type, body;
  std::map<std::string, std::string> attributes;  ///< what else is known, without empty values
};

/// One call of deliver: events of different order keys.
struct DeliverRequest {
  std::vector<PluginEvent> events;
  std::chrono::milliseconds timeout{20'000};  ///< of the call, and before it for a worker that can take it
  std::uint64_t only_by = 0;  ///< number of the only worker that may take it; 0: any. Another one serves: not_begun
};
/// The verdict about one event of a batch, as soon as the plugin gave it.
struct SettledEvent {
  std::size_t index = 0;     ///< in DeliverRequest::events; each at most once
  Attempt attempt;           ///< its texts are scrubbed
  std::uint64_t worker = 0;  ///< number of the worker that must flush it; 0: its plugin has no flush
};
using SettledHandler = std::function<void(SettledEvent)>;
/// How a call of deliver ended.
struct DeliverEnd {
  enum class How {
    returned,   ///< the plugin answered; `status` is its answer
    not_begun,  ///< there was no worker to make the call; `status` says why
    lost        ///< the worker ended during the call, by itself or killed; `status` says how
  };
  How how = How::returned;
  Status status;
};

}  // namespace driftd::core
