// SPDX-License-Identifier: Apache-2.0
// The primitives of Kafka's protocol, for requests that librdkafka does not have. Pure: no I/O.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace driftd::kafka {

inline constexpr std::size_t kFrameHead = 4;         ///< bytes of the length field before each frame
inline constexpr std::size_t kMaxAnswer = 16 << 10;  ///< maximum bytes of one answer; a longer one is rejected unread

/// Throws CORRUPT: `doing` (`SCRAM hello`) got an answer that Kafka does not send.
[[noreturn]] void corrupt_answer(const std::string& doing, const std::string& what);

void put_number(std::string& to, std::uint32_t value, int bytes);  ///< big-endian
void put_text(std::string& to, std::string_view text);             ///< with a length of two bytes
void put_bytes(std::string& to, std::string_view bytes);           ///< with a length of four bytes

/// Returns request header v1 and `body`, with their length in front.
std::string framed_request(std::int16_t api, std::int16_t version, std::int32_t correlation, const std::string& body);

/// Returns the number of bytes that follow these four. Throws CORRUPT if it is more than `max_bytes` or negative.
std::size_t answer_size(const std::string& doing, std::string_view head, std::size_t max_bytes);

/// Reads the fields of an answer; a truncated one is CORRUPT.
class WireAnswer {
 public:
  /// `bytes` are borrowed. Throws CORRUPT if it answers another request than `correlation`.
  WireAnswer(std::string doing, std::string_view bytes, std::int32_t correlation);
  std::int32_t number(int bytes);
  /// Reads a text with a length field of this many bytes; null (-1) becomes empty.
  std::string text(int head);

 private:
  std::string doing_;
  std::string_view left_;
};

}  // namespace driftd::kafka
