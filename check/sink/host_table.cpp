// SPDX-License-Identifier: Apache-2.0
#include "check/sink/host_table.hpp"

#include <fmt/format.h>

#include "check/abi_input.hpp"
#include "check/host.hpp"

namespace driftd::check {
namespace {

constexpr std::int64_t kMaxRetryAfterMs = 3'600'000;
constexpr std::size_t kMaxDetail = 1u << 20;  // bytes; the agent keeps 8 KiB
constexpr std::uint32_t kMaxSettlements = 1'000'000;

/// Keeps one verdict. Returns false, and records a violation, if it is not a valid first verdict about an event.
bool keep(HostCall& call, const driftd_settlement& given) {
  Host& host = Host::get();
  const std::string detail = parse_text(given.detail, "settlement.detail", kMaxDetail);
  if (given.index >= call.events) {
    host.add_violation("verdicts.valid", fmt::format("settle: index {} in a batch of {} events (0 to {})", given.index,
                                                     call.events, call.events - 1));
    return false;
  }
  if (given.outcome < DRIFTD_OUTCOME_DELIVERED || given.outcome > DRIFTD_OUTCOME_DISABLED) {
    host.add_violation("verdicts.valid", fmt::format("settle: event {} got the outcome {}, which is not in sink.h",
                                                     given.index, given.outcome));
    return false;
  }
  if (given.retry_after_ms < 0 || given.retry_after_ms > kMaxRetryAfterMs) {
    host.add_violation("verdicts.valid", fmt::format("settle: event {} asks to be tried again after {} ms; expected 0 "
                                                     "to {}",
                                                     given.index, given.retry_after_ms, kMaxRetryAfterMs));
  }
  const auto first = call.trace.settled.find(given.index);
  if (first != call.trace.settled.end()) {
    host.add_violation("verdicts.once", fmt::format("settle: event {} was settled as {} and then as {}", given.index,
                                                    outcome_name(first->second.outcome), outcome_name(given.outcome)));
    return false;
  }
  if (given.outcome != DRIFTD_OUTCOME_DELIVERED && detail.empty()) {
    host.add_violation("verdicts.reason", fmt::format("settle: event {} got {} without a detail", given.index,
                                                      outcome_name(given.outcome)));
  }
  call.trace.settled[given.index] = {given.outcome, given.retry_after_ms, detail};
  return true;
}

driftd_status settle(driftd_call handle, const driftd_settlement* settlements, std::uint32_t count,
                     std::uint32_t stride) {
  HostCall* call = Host::get().claim(handle, "settle");
  if (call == nullptr) return DRIFTD_INVALID;
  const bool readable = settlements != nullptr && stride >= sizeof(std::uint32_t) && count <= kMaxSettlements;
  if (call->function != Function::deliver || (count > 0 && !readable)) {
    Host::get().add_violation(
        "verdicts.valid",
        fmt::format("settle in {}: {} verdicts of {} bytes at {}; expected an array, in deliver",
                    name_of(call->function), count, stride, settlements == nullptr ? "NULL" : "an address"));
    return DRIFTD_INVALID;
  }
  bool all = true;
  const char* at = reinterpret_cast<const char*>(settlements);
  for (std::uint32_t i = 0; i < count; ++i, at += stride) all &= keep(*call, copy_struct<driftd_settlement>(at));
  return all ? DRIFTD_OK : DRIFTD_INVALID;
}

const driftd_sink_host_table*& table_in_use() {
  static const driftd_sink_host_table* table = own_sink_host_table();
  return table;
}

}  // namespace

const driftd_sink_host_table* own_sink_host_table() {
  static const driftd_sink_host_table kTable = [] {
    const driftd_host_table& shared = *Host::own_table();
    return driftd_sink_host_table{sizeof(driftd_sink_host_table),
                                  DRIFTD_SINK_ABI_MINOR,
                                  shared.now,
                                  shared.log,
                                  shared.cancelled,
                                  shared.deadline,
                                  shared.cancel_fd,
                                  &settle,
                                  shared.diag,
                                  shared.secret,
                                  shared.query};
  }();
  return &kTable;
}

const driftd_sink_host_table* sink_host_table() { return table_in_use(); }
void set_sink_host_table(const driftd_sink_host_table* table) { table_in_use() = table; }

const char* outcome_name(unsigned outcome) {
  static constexpr const char* kNames[] = {"no verdict", "delivered", "retry_event", "retry_sink",
                                           "refused",    "permanent", "disabled"};
  return outcome < std::size(kNames) ? kNames[outcome] : "an unknown outcome";
}

}  // namespace driftd::check
