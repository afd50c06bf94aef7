// SPDX-License-Identifier: Apache-2.0
// Frames: how the stream of bytes between agent and worker is cut. wire_fields.hpp writes and reads their payloads.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace driftd::ipc {

/// The type of a frame between agent and worker, and the message that its payload holds (messages.hpp,
/// ext_messages.hpp, side_messages.hpp, sink_messages.hpp). The numbers hold for this build only: agent and worker ship
/// together.
enum class FrameType : std::uint16_t {
  // agent → worker
  load = 1,   ///< Load; the first frame, once
  open,       ///< Open; once, after load
  refresh,    ///< RefreshCall
  read,       ///< ReadCall
  health,     ///< PlainCall
  watch,      ///< PlainCall
  demote,     ///< DemoteCall; the plugin's diff
  discover,   ///< DiscoverCall
  upgrade,    ///< UpgradeCall
  apply,      ///< ApplyCall
  cancel,     ///< empty; the call shall end soon, and still sends its result
  credit,     ///< Credit
  permitted,  ///< PermitAnswer
  stop,       ///< empty, of no call; the worker closes its instance and ends
  deliver,    ///< DeliverCall of a sink plugin, or the rest of one
  flush,      ///< PlainCall of a sink plugin
  part,       ///< the beginning of the payload of the deliver that follows
  // worker → agent
  result = 32,  ///< CallResult; the last frame of each call, also of one that was refused
  records,      ///< a list of up to kMaxBatch core::Observation; refresh, read and watch only
  mark,         ///< core::Mark; refresh, read and watch only
  diagnostic,   ///< core::Diagnostic
  log,          ///< LogLine
  metric,       ///< Gauge
  permit,       ///< PermitRequest
  settled       ///< a list of Settlement; deliver only
};

/// Returns the name of a call as error messages print it: `refresh`, `read`; `diff` for demote, `call` for what is not
/// one.
std::string_view call_name(FrameType call);

/// One frame, as a value. render() adds the header and FrameReader checks and removes it.
struct Frame {
  FrameType type = FrameType::load;
  std::uint64_t call = 0;  ///< chosen by the agent, never used twice for a worker; 0: of no particular call
  std::string payload;     ///< encode() of the message, at most kMaxPayload
};

inline constexpr std::size_t kHeaderSize = 24;        ///< magic, type, length, call, CRC-32C of header and payload
inline constexpr std::size_t kMaxPayload = 8u << 20;  ///< bytes
inline constexpr std::size_t kMaxSmall = 256u << 10;  ///< bytes, for frames that carry neither records nor an answer
inline constexpr std::size_t kCallCredit = 1u << 20;  ///< bytes of records, marks and diagnostics in flight per call
inline constexpr std::size_t kMaxBatch = 64;          ///< records of one frame

/// Returns the bytes of a frame, ready to send. Does not check the size of the payload: the reader does.
std::string render(const Frame& frame);

/// Cuts a byte stream into frames. Returns `corrupt` if magic, type, length or checksum is wrong; the stream is
/// unusable then. Holds no more than one frame and the bytes that were fed together with its end, if next() is called
/// until it has no frame before more is fed. One for each end of a socket; one thread.
class FrameReader {
 public:
  void feed(std::string_view bytes);  ///< copies what was received, in any pieces
  /// Returns the next whole frame; nullopt if more bytes are needed.
  Result<std::optional<Frame>> next();

 private:
  std::string buffer_;
  std::size_t at_ = 0;  ///< where the next frame begins in buffer_
};

}  // namespace driftd::ipc
