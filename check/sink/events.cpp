// SPDX-License-Identifier: Apache-2.0
#include "check/sink/events.hpp"

#include <driftd/v1/event.pb.h>
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <random>

#include "check/check.hpp"
#include "check/random.hpp"

namespace driftd::check {
namespace {

constexpr std::int64_t kTimeNs = 1'790'000'000'000'000'000;
constexpr std::size_t kEventBytes = 1024;         // more than a plain event has
constexpr char kTime[] = "2026-09-21T14:13:20Z";  // kTimeNs as text

driftd_event place(Inputs& inputs, const Event& event) {
  std::vector<driftd_kv> attributes;
  for (const auto& [key, value] : event.attributes)
    attributes.push_back({sizeof(driftd_kv), 0, inputs.text(key), inputs.text(value)});
  driftd_event out{};
  out.flags = event.flags;
  out.id = inputs.text(event.id);
  out.source = inputs.text(event.source);
  out.type = inputs.text(event.type);
  out.subject = inputs.text(event.subject);
  out.topic = inputs.text(event.topic);
  out.order_key = inputs.text(event.key);
  out.sequence = event.sequence;
  out.incarnation = 1;
  out.time_ns = kTimeNs + static_cast<std::int64_t>(event.sequence);
  out.content_type = inputs.text(event.content_type);
  out.body = inputs.text(event.body);
  out.attributes = inputs.put(attributes);
  out.attribute_count = static_cast<std::uint32_t>(attributes.size());
  out.attribute_stride = inputs.stride<driftd_kv>();
  return out;
}

std::string json_body(const Event& event, const std::string& text) {
  const nlohmann::ordered_json out{{"specversion", "1.0"},
                                   {"id", event.id},
                                   {"source", event.source},
                                   {"type", event.type},
                                   {"subject", event.subject},
                                   {"time", kTime},
                                   {"datacontenttype", "application/json"},
                                   {"partitionkey", event.key},
                                   {"driftseq", std::to_string(event.sequence)},
                                   {"driftincarnation", "1"},
                                   {"data",
                                    {{"event_id", event.id},
                                     {"backend_name", "cache"},
                                     {"what", "config.updated"},
                                     {"metadata", {{"value", text}}}}}};
  return out.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

std::string protobuf_body(const Event& event, const std::string& text) {
  driftd::v1::BackendChangeEvent out;
  out.set_event_id(event.id);
  out.set_backend_name("cache");
  out.set_what("config.updated");
  out.set_sequence(event.sequence);
  out.set_incarnation(1);
  (*out.mutable_metadata())["value"] = text;
  return out.SerializeAsString();
}

}  // namespace

const driftd_batch* put_batch(Inputs& inputs, const Batch& batch) {
  std::vector<driftd_event> events;
  for (const auto& event : batch) events.push_back(place(inputs, event));
  driftd_batch out{};
  out.events = inputs.put(events);
  out.event_count = static_cast<std::uint32_t>(events.size());
  out.event_stride = inputs.stride<driftd_event>();
  return inputs.put(out);
}

std::string EventMaker::prefix_of(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  return "chk" + random_word(random, 9);
}

EventMaker::EventMaker(const SinkInfo& info, std::uint64_t seed, std::size_t first)
    : prefix_(prefix_of(seed)),
      batch_events_(std::clamp<std::size_t>(info.batch_bytes / kEventBytes, 1, info.batch_events)),
      made_(first) {
  for (const auto& form : info.bodies) {
    json_ = form == DRIFTD_BODY_CLOUDEVENTS_JSON;
    if (json_ || form == DRIFTD_BODY_PROTOBUF) return;
  }
  throw CheckNotMade(
      fmt::format("describe: `bodies` names no form that the agent can produce ({}, {}); see "
                  "schema.describe",
                  DRIFTD_BODY_CLOUDEVENTS_JSON, DRIFTD_BODY_PROTOBUF));
}

std::string EventMaker::body(const Event& event, const std::string& text) const {
  return json_ ? json_body(event, text) : protobuf_body(event, text);
}

Event EventMaker::next(std::size_t key, const std::string& text) {
  Event out;
  out.id = fmt::format("{}-{:0{}}", prefix_, made_++, kDigits);
  out.source = "//default/driftd/redis";
  out.type = "io.driftd.backend.config.updated.v1";
  out.subject = fmt::format("cache/server/s{}", key);
  out.topic = "backend.cache.config.updated";
  out.key = out.subject;
  out.sequence = ++sequences_[key];
  out.content_type = json_ ? DRIFTD_BODY_CLOUDEVENTS_JSON : DRIFTD_BODY_PROTOBUF;
  out.attributes = {{"cluster", "default"},       {"provider", "redis"},
                    {"backend", "cache"},         {"backend_type", "redis"},
                    {"change", "config.updated"}, {"resource", fmt::format("server/s{}", key)}};
  out.body = body(out, text);
  return out;
}

Batch EventMaker::batch(std::size_t count, std::size_t first_key) {
  Batch out;
  for (std::size_t i = 0; i < count; ++i) out.push_back(next(first_key + i));
  return out;
}

Batch EventMaker::full_batch(std::size_t limit) { return batch(std::min(limit, batch_events_)); }

}  // namespace driftd::check
