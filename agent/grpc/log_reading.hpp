// SPDX-License-Identifier: Apache-2.0
// What a stream sends next, from a slice of the log. Pure; any thread.
#pragma once

#include <memory>
#include <vector>

#include "core/ports/reader.hpp"
#include "grpc/filter.hpp"
#include "grpc/frames.hpp"

namespace driftd::rpc {

/// Where a stream wants to begin.
struct Start {
  enum class At { now, oldest, token } at = At::now;
  ResumeToken token{};  ///< for At::token
};

/// Where it begins, and what it must be told about that.
struct Beginning {
  std::int64_t after = 0;  ///< it continues after this event
  std::optional<Gap> gap{};
};
/// Decides the beginning. `log` is read at the token's seq, or at any; `first_above` is
/// Reader::first_above_incarnation() of the token's incarnation, and only matters if that is not the log's.
Beginning begin_at(const Start& start, const core::LogSlice& log, std::int64_t first_above);

/// Messages to send, in order, and where the stream is once they are sent.
struct Batch {
  std::vector<std::string> frames;  ///< of kMaxBatchBytes together, or one larger one
  std::int64_t after = 0;
  std::int64_t newest = 0;  ///< of the log
  bool at_end = true;       ///< the log has nothing more now
};
inline constexpr std::size_t kMaxBatchBytes = 256 << 10;  ///< what one stream may hold in memory
inline constexpr int kMaxBatchEvents = 64;                ///< events that one read asks for

/// Filters a slice that was read after `after`. Missing numbers become gaps.
Batch make_batch(const core::LogSlice& log, std::int64_t after, const Filter& filter);

}  // namespace driftd::rpc
