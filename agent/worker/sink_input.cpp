// SPDX-License-Identifier: Apache-2.0
#include "worker/sink_input.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <optional>

#include "worker/abi_input.hpp"

namespace driftd::worker {
namespace {

std::optional<core::Attempt::Outcome> outcome_of(std::uint32_t outcome) {
  using Outcome = core::Attempt::Outcome;
  switch (outcome) {
    case DRIFTD_OUTCOME_DELIVERED:
      return Outcome::delivered;
    case DRIFTD_OUTCOME_RETRY_EVENT:
      return Outcome::retry_event;
    case DRIFTD_OUTCOME_RETRY_SINK:
      return Outcome::retry_sink;
    case DRIFTD_OUTCOME_REFUSED:
      return Outcome::refused;
    case DRIFTD_OUTCOME_PERMANENT:
      return Outcome::permanent;
    case DRIFTD_OUTCOME_DISABLED:
      return Outcome::disabled;
    default:
      return std::nullopt;
  }
}

/// Returns what is wrong with a verdict; empty if nothing is.
std::string settlement_fault(const ActiveCall& call, const driftd_settlement& given) {
  const auto& settled = call.settled();
  if (call.type != ipc::FrameType::deliver) return "this call delivers nothing";
  if (given.index >= settled.size()) return fmt::format("index {} of a batch of {}", given.index, settled.size());
  if (!outcome_of(given.outcome)) return fmt::format("outcome {} is unknown", given.outcome);
  if (settled[given.index]) return fmt::format("event {} is settled already; its first verdict stays", given.index);
  return {};
}

}  // namespace

std::vector<ipc::Settlement> read_settlements(ActiveCall& call, const driftd_settlement* given, std::uint32_t count,
                                              std::uint32_t stride) {
  std::vector<ipc::Settlement> out;
  if (count > 0 && (given == nullptr || stride < sizeof(std::uint64_t))) {
    call.instance.misuse("settle: the array is NULL or its stride too short");
    return out;
  }
  const char* at = reinterpret_cast<const char*>(given);
  for (std::uint32_t i = 0; i < count; ++i, at += stride) {
    const auto one = adopt<driftd_settlement>(at);
    if (const std::string fault = settlement_fault(call, one); !fault.empty()) {
      call.instance.misuse("settle: " + fault);
      continue;
    }
    call.note_settled(one.index);
    out.push_back({one.index, *outcome_of(one.outcome),
                   std::clamp<std::int64_t>(one.retry_after_ms, 0, ipc::kMaxRetryAfter.count()),
                   call.instance.scrubber.printable(view(one.detail), ipc::kMaxText)});
  }
  return out;
}

BorrowedBatch::BorrowedBatch(const std::vector<core::PluginEvent>& events) {
  for (const auto& event : events) {
    auto& list = attributes_.emplace_back();
    for (const auto& [key, value] : event.attributes) list.push_back({sizeof(driftd_kv), 0, str(key), str(value)});
  }
  for (std::size_t i = 0; i < events.size(); ++i) {
    const auto& event = events[i];
    driftd_event out{};
    out.size = sizeof out;
    out.flags = (event.replay ? DRIFTD_EVENT_REPLAY : 0) | (event.agent_event ? DRIFTD_EVENT_AGENT : 0);
    out.id = str(event.id);
    out.source = str(event.source);
    out.type = str(event.type);
    out.subject = str(event.subject);
    out.topic = str(event.topic);
    out.order_key = str(event.order_key);
    out.sequence = event.sequence;
    out.incarnation = event.incarnation;
    out.time_ns = event.time_ns;
    out.content_type = str(event.content_type);
    out.body = str(event.body);
    out.attributes = attributes_[i].empty() ? nullptr : attributes_[i].data();
    out.attribute_count = static_cast<std::uint32_t>(attributes_[i].size());
    out.attribute_stride = sizeof(driftd_kv);
    events_.push_back(out);
  }
}

driftd_batch BorrowedBatch::view() const {
  return {sizeof(driftd_batch), 0, events_.data(), static_cast<std::uint32_t>(events_.size()), sizeof(driftd_event)};
}

}  // namespace driftd::worker
