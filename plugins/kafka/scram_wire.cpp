// SPDX-License-Identifier: Apache-2.0
#include "kafka/scram_wire.hpp"

#include <algorithm>
#include <charconv>

#include "driftd/sdk/types.hpp"
#include "kafka/text.hpp"

namespace driftd::kafka {
namespace {

constexpr std::int16_t kSaslHandshake = 17, kSaslAuthenticate = 36;
constexpr std::int16_t kUnsupportedMechanism = 33, kIllegalSaslState = 34, kAuthenticationFailed = 58;
constexpr std::size_t kMaxSalt = 1024;  // base64; Kafka makes 26 bytes
constexpr int kMaxMechanisms = 64;

[[noreturn]] void corrupt(const std::string& what) {
  throw sdk::Failure(DRIFTD_CORRUPT, "SCRAM hello: the answer is not what Kafka sends: " + what);
}

void put(std::string& to, std::uint32_t value, int bytes) {
  while (bytes-- > 0) to.push_back(static_cast<char>(value >> (bytes * 8) & 0xff));
}
void put_text(std::string& to, std::string_view text) {
  put(to, static_cast<std::uint32_t>(text.size()), 2);
  to += text;
}

/// Request header v1 and `body`, with their length in front.
std::string framed(std::int16_t api, std::int16_t version, std::int32_t correlation, const std::string& body) {
  std::string out;
  put(out, static_cast<std::uint32_t>(api), 2);
  put(out, static_cast<std::uint32_t>(version), 2);
  put(out, static_cast<std::uint32_t>(correlation), 4);
  put_text(out, "driftd");
  out += body;
  std::string head;
  put(head, static_cast<std::uint32_t>(out.size()), 4);
  return head + out;
}

/// Reads the fields of an answer; a truncated one is CORRUPT.
class Answer {
 public:
  Answer(std::string_view bytes, std::int32_t correlation) : left_(bytes) {
    if (number(4) != correlation) corrupt("it answers another request");
  }
  std::int32_t number(int bytes) {
    if (left_.size() < static_cast<std::size_t>(bytes)) corrupt("it is cut");
    std::uint32_t out = left_[0] < 0 ? ~0u : 0u;  // the sign
    for (int i = 0; i < bytes; ++i) out = out << 8 | static_cast<unsigned char>(left_[static_cast<std::size_t>(i)]);
    left_.remove_prefix(static_cast<std::size_t>(bytes));
    return static_cast<std::int32_t>(out);
  }
  /// Reads a text with a length field of this many bytes; null (-1) becomes empty.
  std::string text(int head) {
    const std::int32_t size = number(head);
    if (size < -1 || (size > 0 && static_cast<std::size_t>(size) > left_.size())) corrupt("it is cut");
    std::string out(left_.substr(0, static_cast<std::size_t>(std::max(size, 0))));
    left_.remove_prefix(out.size());
    return out;
  }

 private:
  std::string_view left_;
};

bool is_base64(std::string_view text) {
  if (text.empty() || text.size() % 4 != 0 || text.size() > kMaxSalt) return false;
  const auto pad = text.ends_with("==") ? 2u : text.ends_with('=') ? 1u : 0u;
  const std::string_view digits = text.substr(0, text.size() - pad);
  return std::all_of(digits.begin(), digits.end(), [](char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '+' || c == '/';
  });
}

/// Cuts the next `<name>=<value>` off `rest`.
std::string_view attribute(std::string_view& rest, char name) {
  if (rest.size() < 2 || rest[0] != name || rest[1] != '=') corrupt(std::string("no ") + name + "= where it belongs");
  const auto end = std::min(rest.find(','), rest.size());
  const std::string_view out = rest.substr(2, end - 2);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return out;
}

}  // namespace

std::string handshake_request(std::int32_t correlation, const std::string& mechanism) {
  std::string body;
  put_text(body, mechanism);
  return framed(kSaslHandshake, 1, correlation, body);
}

std::string authenticate_request(std::int32_t correlation, std::string_view message) {
  std::string body;
  put(body, static_cast<std::uint32_t>(message.size()), 4);
  body += message;
  return framed(kSaslAuthenticate, 0, correlation, body);
}

std::string client_first(const std::string& user, const std::string& nonce) {
  std::string name;
  for (const char c : user) {
    if (c == '=')
      name += "=3D";
    else if (c == ',')
      name += "=2C";
    else
      name.push_back(c);
  }
  return "n,,n=" + name + ",r=" + nonce;
}

std::size_t answer_size(std::string_view head) {
  std::uint32_t out = 0;
  for (const char c : head.substr(0, kFrameHead)) out = out << 8 | static_cast<unsigned char>(c);
  if (head.size() < kFrameHead || out < 4 || out > kMaxAnswer) corrupt("its length (does this listener speak TLS?)");
  return out;
}

void parse_handshake(std::string_view bytes, std::int32_t correlation, const std::string& mechanism) {
  Answer answer(bytes, correlation);
  const std::int32_t error = answer.number(2);
  if (error == 0) return;
  if (error == kIllegalSaslState) {
    throw sdk::Failure(DRIFTD_UNSUPPORTED,
                       "SCRAM hello: this listener speaks no SASL; name one that does in "
                       "settings.scram_hello.servers");
  }
  if (error != kUnsupportedMechanism) corrupt("error " + std::to_string(error) + " to the handshake");
  std::string enabled;
  const std::int32_t count = answer.number(4);
  for (int i = 0; i < std::min(count, kMaxMechanisms); ++i) enabled += (i > 0 ? ", " : "") + answer.text(2);
  throw sdk::Failure(DRIFTD_UNSUPPORTED, "SCRAM hello: " + mechanism +
                                             " is not enabled at this listener (enabled: " + one_line(enabled) + ")");
}

std::string parse_authenticate(std::string_view bytes, std::int32_t correlation) {
  Answer answer(bytes, correlation);
  const std::int32_t error = answer.number(2);
  const std::string words = answer.text(2);
  if (error == 0) return answer.text(4);
  if (error != kAuthenticationFailed) corrupt("error " + std::to_string(error) + " to the first message");
  throw sdk::Failure(DRIFTD_UNAVAILABLE,
                     "SCRAM hello: the broker has no such credential, or does not say: " + one_line(words));
}

ServerFirst parse_server_first(std::string_view message, std::string_view nonce) {
  std::string_view rest = message;
  const std::string_view whole = attribute(rest, 'r');
  if (nonce.empty() || !whole.starts_with(nonce) || whole.size() == nonce.size())
    corrupt("its nonce does not go on with ours");
  ServerFirst out;
  out.salt = attribute(rest, 's');
  if (!is_base64(out.salt)) corrupt("its salt is no base64 of a likely length");
  const std::string_view count = attribute(rest, 'i');
  const auto [end, error] = std::from_chars(count.data(), count.data() + count.size(), out.iterations);
  if (error != std::errc() || end != count.data() + count.size() || out.iterations < 1)
    corrupt("its iterations are no number");
  return out;
}

}  // namespace driftd::kafka
