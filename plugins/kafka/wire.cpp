// SPDX-License-Identifier: Apache-2.0
#include "kafka/wire.hpp"

#include <algorithm>

#include "driftd/sdk/types.hpp"

namespace driftd::kafka {

void corrupt_answer(const std::string& doing, const std::string& what) {
  throw sdk::Failure(DRIFTD_CORRUPT, doing + ": the answer is not what Kafka sends: " + what);
}

void put_number(std::string& to, std::uint32_t value, int bytes) {
  while (bytes-- > 0) to.push_back(static_cast<char>(value >> (bytes * 8) & 0xff));
}

void put_text(std::string& to, std::string_view text) {
  put_number(to, static_cast<std::uint32_t>(text.size()), 2);
  to += text;
}

void put_bytes(std::string& to, std::string_view bytes) {
  put_number(to, static_cast<std::uint32_t>(bytes.size()), 4);
  to += bytes;
}

std::string framed_request(std::int16_t api, std::int16_t version, std::int32_t correlation, const std::string& body) {
  std::string out;
  put_number(out, static_cast<std::uint32_t>(api), 2);
  put_number(out, static_cast<std::uint32_t>(version), 2);
  put_number(out, static_cast<std::uint32_t>(correlation), 4);
  put_text(out, "driftd");
  out += body;
  std::string head;
  put_number(head, static_cast<std::uint32_t>(out.size()), 4);
  return head + out;
}

std::size_t answer_size(const std::string& doing, std::string_view head, std::size_t max_bytes) {
  std::uint32_t out = 0;
  for (const char c : head.substr(0, kFrameHead)) out = out << 8 | static_cast<unsigned char>(c);
  if (head.size() < kFrameHead || out < 4 || out > max_bytes)
    corrupt_answer(doing, "its length (does this listener speak TLS?)");
  return out;
}

WireAnswer::WireAnswer(std::string doing, std::string_view bytes, std::int32_t correlation)
    : doing_(std::move(doing)),
      left_(bytes) {
  if (number(4) != correlation) corrupt_answer(doing_, "it answers another request");
}

std::int32_t WireAnswer::number(int bytes) {
  if (left_.size() < static_cast<std::size_t>(bytes)) corrupt_answer(doing_, "it is cut");
  std::uint32_t out = left_[0] < 0 ? ~0u : 0u;  // the sign
  for (int i = 0; i < bytes; ++i) out = out << 8 | static_cast<unsigned char>(left_[static_cast<std::size_t>(i)]);
  left_.remove_prefix(static_cast<std::size_t>(bytes));
  return static_cast<std::int32_t>(out);
}

std::string WireAnswer::text(int head) {
  const std::int32_t size = number(head);
  if (size < -1 || (size > 0 && static_cast<std::size_t>(size) > left_.size())) corrupt_answer(doing_, "it is cut");
  std::string out(left_.substr(0, static_cast<std::size_t>(std::max(size, 0))));
  left_.remove_prefix(out.size());
  return out;
}

}  // namespace driftd::kafka
