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

/// What a frame between agent and worker says; numbers are of this build only (agent and worker ship together).
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

std::string_view call_name(FrameType call);  ///< `refresh`, `read` ... as reasons print it

struct Frame {
  FrameType type = FrameType::load;
  std::uint64_t call = 0;  ///< 0: no call in particular
  std::string payload;
};

inline constexpr std::size_t kHeaderSize = 24;         ///< magic, type, length, call, CRC-32C of header and payload
inline constexpr std::size_t kMaxPayload = 8u << 20;   ///< bytes
inline constexpr std::size_t kMaxSmall = 256u << 10;   ///< bytes, where a frame carries neither records nor an answer
inline constexpr std::size_t kCallCredit = 1u << 20;   ///< bytes of records, marks, diagnostics in flight per call
inline constexpr std::size_t kMaxBatch = 64;           ///< records of one frame
inline constexpr std::size_t kAnyCount = 0xffff'ffff;  ///< elements of a list: as many as there are bytes

/// The bytes of a frame, ready to send.
std::string render(const Frame& frame);

/// Cuts a byte stream into frames. `corrupt` on a wrong magic, type, length or checksum; then the stream is of no more
/// use. Holds no more than one frame and what was fed with its last bytes.
class FrameReader {
 public:
  void feed(std::string_view bytes);
  /// The next whole frame; nullopt: more bytes are needed.
  Result<std::optional<Frame>> next();

 private:
  std::string buffer_;
  std::size_t at_ = 0;
};

/// Writes fields in order: integers little endian, text and lists with a 32-bit count. Structs through
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

/// Reads what Encoder wrote; never past the end. After a failure every value stays as it was. A list of more than
/// `max_items` elements and a number that is none of its enum are failures.
class Decoder {
 public:
  explicit Decoder(std::string_view in, std::size_t max_items = kAnyCount) : in_(in), max_items_(max_items) {}
  template <class... T>
  void operator()(T&... values) {
    (get(values), ...);
  }
  /// All was there and nothing is left over.
  bool whole() const { return ok_ && in_.empty(); }
  bool ok() const { return ok_; }
  std::size_t left() const { return in_.size(); }  ///< bytes

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
