// SPDX-License-Identifier: Apache-2.0
// The notifications that `driftd test` shows and sends.
#include "cli/test_event.hpp"

#include "base/instant.hpp"
#include "proto/codec.hpp"

namespace driftd::cli {
namespace {

using core::Value;

constexpr const char* kThisIsATest = "This is a test: `driftd test` sent it. There is nothing to decide.";
constexpr const char* kActions = "APPROVE REJECT IGNORE";

Value sample_drift(const std::string& id, const std::string& resource, const std::string& lines) {
  return Value::Object{{"id", id},
                       {"ref", id + "@0123456789ab"},
                       {"backend", "orders-kafka"},
                       {"resource", resource},
                       {"class", "config"},
                       {"message", lines},
                       {"actions", kActions}};
}

/// The drifts that a sample lists. One of them has what means something in a chat, and must show as it is here.
Value::Array sample_drifts() {
  return {sample_drift("d-0000000000000001", "kafka_topic/orders",
                       "Field kafka_topic/orders:retention.ms changed from 604800000 to 3600000\n"
                       "Field kafka_topic/orders:cleanup.policy changed from \"delete\" to \"compact\""),
          sample_drift("d-0000000000000002", "kafka_acl/<!channel> *bold* [link](https://example.org)",
                       "Field kafka_acl/<!channel> *bold* [link](https://example.org) (created) changed from (absent) "
                       "to \"User:ann\""),
          sample_drift("d-0000000000000003", "kafka_user/ann",
                       "Field kafka_user/ann:password changed from [REDACTED] to [REDACTED]")};
}

core::StoredEvent stored(const core::AgentEvent& event, Nanos now) {
  core::EventStamp stamp;
  stamp.id = "test-" + std::to_string(now);
  stamp.recorded_ns = now;
  return proto::to_stored_event(event, stamp);
}

}  // namespace

core::StoredEvent sample_notification(const std::string& kind, Nanos now) {
  core::AgentEvent out;
  out.agent = "driftd-test";
  out.cluster = "default";
  out.what = kind == "escalation" ? "escalation" : "notification";
  out.at_ns = now;
  out.backend = kind == "summary" ? "" : "orders-kafka";
  out.details = {{"title", "Backend drift detected: orders-kafka"}, {"kind", kind}, {"count", "0"}, {"drifts", "[]"}};
  if (kind == "ended") {
    out.details["title"] = "Backend drift ended: orders-kafka";
    out.message = std::string("Nothing waits for a decision here any more.\n") + kThisIsATest;
  } else if (kind == "summary") {
    out.details["title"] = "Backend drift detected: 2 groups";
    out.message = std::string("orders-kafka: 40 drifts\nsessions-redis: ended\n") + kThisIsATest;
  } else {
    out.details["count"] = "40";
    out.details["actions"] = kActions;
    const Value::Array drifts = sample_drifts();
    for (const auto& drift : drifts) out.message += text(drift, "message") + "\n";
    out.message += kThisIsATest;
    out.details["drifts"] = core::render(Value(drifts));
    out.details["remark"] = kThisIsATest;
  }
  return stored(out, now);
}

Outcome<core::StoredEvent> stored_notification(const Context& context, std::int64_t seq) {
  const auto answer = context.client().get("/v1/events?limit=1&after=" + std::to_string(seq - 1));
  if (!answer) return tl::unexpected(answer.error());
  const auto found = list(*answer, "events");
  const Value event = found.empty() ? Value() : found.front();
  if (number(event, "seq") != seq || !flag(event, "agent_event") || member(event, "event").is_null()) {
    return tl::unexpected(
        Failure{kUsage, "event " + std::to_string(seq) +
                            " is no longer stored, or is not about the agent; `driftd events` shows " +
                            "the numbers of notifications (agent.notification, agent.escalation)"});
  }
  const Value about = member(event, "event");
  core::AgentEvent out;
  out.agent = text(about, "agent");
  out.cluster = text(about, "cluster");
  out.what = text(about, "what");
  out.backend = text(about, "backend_name");
  out.message = text(about, "message");
  const Value details = member(about, "details");
  if (const auto* members = details.object()) {
    for (const auto& [name, value] : *members) out.details[name] = text(value);
  }
  return stored(out, parse_nanos(text(event, "recorded")).value_or(0));
}

}  // namespace driftd::cli
