// SPDX-License-Identifier: Apache-2.0
// Frames: how the stream of bytes between agent and worker is cut. wire_fields.hpp writes and reads their payloads.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace driftd::ipc {

/// The type of a frame between agent and worker. The numbers hold for this build only: agent and worker ship together.
enum class FrameType : std::uint16_t {
  // agent → worker
  load = 1,
  open,
  refresh,
  read,
  health,
  watch,
  demote,
  discover,
  upgrade,
  apply,
  cancel,
  credit,
  permitted,
  stop,
  // worker → agent
  result = 32,
  records,
  mark,
  diagnostic,
  log,
  metric,
  permit
};

std::string_view call_name(FrameType call);  ///< `refresh`, `read` ... as error messages print it

struct Frame {
  FrameType type = FrameType::load;
  std::uint64_t call = 0;  ///< 0: of no particular call
  std::string payload;
};

inline constexpr std::size_t kHeaderSize = 24;        ///< magic, type, length, call, CRC-32C of header and payload
inline constexpr std::size_t kMaxPayload = 8u << 20;  ///< bytes
inline constexpr std::size_t kMaxSmall = 256u << 10;  ///< bytes, for frames that carry neither records nor an answer
inline constexpr std::size_t kCallCredit = 1u << 20;  ///< bytes of records, marks and diagnostics in flight per call
inline constexpr std::size_t kMaxBatch = 64;          ///< records of one frame

/// Returns the bytes of a frame, ready to send.
std::string render(const Frame& frame);

/// Cuts a byte stream into frames. Returns `corrupt` if magic, type, length or checksum is wrong; the stream is
/// unusable then. Holds no more than one frame and the bytes that were fed together with its end.
class FrameReader {
 public:
  void feed(std::string_view bytes);
  /// Returns the next whole frame; nullopt if more bytes are needed.
  Result<std::optional<Frame>> next();

 private:
  std::string buffer_;
  std::size_t at_ = 0;
};

}  // namespace driftd::ipc
