// SPDX-License-Identifier: Apache-2.0
#include "grpc/log_reading.hpp"

#include <fmt/format.h>

namespace driftd::rpc {
namespace {

Gap missing(std::int64_t from, std::int64_t to) {
  return {GapReason::retention, from, to,
          fmt::format("events {} to {} left the agent's store before this stream had read them: they were older than "
                      "retention, or deleted because of retention.max_bytes, or damaged; read the backends again",
                      from, to)};
}

Gap other_incarnation(const ResumeToken& token, const core::LogSlice& log) {
  return {GapReason::incarnation, 0, 0,
          fmt::format("the token is of incarnation {} of the agent's store, which now is in incarnation {}: it was "
                      "restored, cut or copied. Events of the former one that it no longer has are lost; events that "
                      "were read before may come again; read the backends again",
                      token.incarnation, log.incarnation)};
}

Gap unknown(const ResumeToken& token, const core::LogSlice& log) {
  return {GapReason::unknown_token, 0, 0,
          fmt::format("the token names event {} of incarnation {}, and this store, in incarnation {}, ends at event "
                      "{}: it is of another agent, or of a store that is gone. The stream begins with the oldest event "
                      "that is kept",
                      token.seq, token.incarnation, log.incarnation, log.newest)};
}

}  // namespace

Beginning begin_at(const Start& start, const core::LogSlice& log, std::int64_t first_above) {
  if (start.at == Start::At::now) return {log.newest};
  if (start.at == Start::At::oldest) return {log.oldest - 1};
  const ResumeToken& token = start.token;
  const bool same = token.incarnation == log.incarnation;
  if (token.incarnation > log.incarnation || (same && token.seq > log.newest)) {
    return {log.oldest - 1, unknown(token, log)};
  }
  if (same) return {token.seq};
  return {std::min(token.seq, first_above - 1), other_incarnation(token, log)};
}

Batch make_batch(const core::LogSlice& log, std::int64_t after, const Filter& filter) {
  Batch out;
  out.after = after;
  out.newest = log.newest;
  std::size_t bytes = 0;
  const auto add = [&](std::string frame) {
    bytes += frame.size();
    out.frames.push_back(std::move(frame));
  };
  for (const auto& event : log.events) {
    const std::int64_t seq = event.stamp.seq;
    if (seq > out.after + 1) add(gap_frame(missing(out.after + 1, seq - 1), {log.incarnation, seq - 1}));
    if (filter.matches(event)) add(event_frame(event, {log.incarnation, seq}));
    out.after = seq;
    if (bytes >= kMaxBatchBytes) break;
  }
  if (log.events.empty() && log.newest > after) {
    add(gap_frame(missing(after + 1, log.newest), {log.incarnation, log.newest}));
    out.after = log.newest;
  }
  out.at_end = out.after >= log.newest;
  return out;
}

}  // namespace driftd::rpc
