// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

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

inline constexpr std::size_t kHeaderSize = 24;         ///< magic, type, length, call, CRC-32C of header and payload
inline constexpr std::size_t kMaxPayload = 8u << 20;   ///< bytes
inline constexpr std::size_t kMaxSmall = 256u << 10;   ///< bytes, for frames that carry neither records nor an answer
inline constexpr std::size_t kCallCredit = 1u << 20;   ///< bytes of records, marks and diagnostics in flight per call
inline constexpr std::size_t kMaxBatch = 64;           ///< records of one frame
inline constexpr std::size_t kAnyCount = 0xffff'ffff;  ///< elements of a list: only its bytes limit them

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

/// Writes fields in order: integers little endian, texts and lists after a 32-bit count, structs through
/// `fields(archive, value)`.
class Encoder {
 public:
  template <class... T>
  void operator()(const T&... values) {
    (put(values), ...);
  }
  std::string take() { return std::move(out_); }

 private:
  template <class T>
  void put(const T& value);
  void raw(std::uint64_t value, int bytes);
  void text(std::string_view value);
  std::string out_;
};

/// Reads what Encoder wrote, never past the end. After a failure the remaining values keep their old contents. It fails
/// if a list has more than `max_items` elements or a number is not in its enum.
class Decoder {
 public:
  explicit Decoder(std::string_view in, std::size_t max_items = kAnyCount) : in_(in), max_items_(max_items) {}
  template <class... T>
  void operator()(T&... values) {
    (get(values), ...);
  }
  /// Returns true if everything was read without a failure and nothing is left over.
  bool whole() const { return ok_ && in_.empty(); }
  bool ok() const { return ok_; }
  std::size_t left() const { return in_.size(); }  ///< bytes not yet read

 private:
  template <class T>
  void get(T& value);
  std::uint64_t raw(int bytes);
  std::string text();
  std::size_t count();
  std::string_view in_;
  std::size_t max_items_;
  bool ok_ = true;
};

template <class T>
std::string encode(const T& value) {
  Encoder encoder;
  encoder(value);
  return encoder.take();
}
template <class T>
Result<T> decode(std::string_view payload, std::size_t max_items = kAnyCount) {
  Decoder decoder(payload, max_items);
  T value{};
  decoder(value);
  if (!decoder.whole()) return fail(Code::corrupt, "a frame's payload cannot be decoded");
  return value;
}

}  // namespace driftd::ipc

#include "ipc/wire_fields.hpp"
