// SPDX-License-Identifier: Apache-2.0
#include "kafka/scram_wire.hpp"

#include <algorithm>
#include <charconv>

#include "driftd/sdk/types.hpp"
#include "kafka/text.hpp"
#include "kafka/wire.hpp"

namespace driftd::kafka {
namespace {

constexpr std::int16_t kSaslHandshake = 17, kSaslAuthenticate = 36;
constexpr std::int16_t kUnsupportedMechanism = 33, kIllegalSaslState = 34, kAuthenticationFailed = 58;
constexpr std::size_t kMaxSalt = 1024;  // base64; Kafka makes 26 bytes
constexpr int kMaxMechanisms = 64;

constexpr const char* kHello = "SCRAM hello";

[[noreturn]] void corrupt(const std::string& what) { corrupt_answer(kHello, what); }

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
  return framed_request(kSaslHandshake, 1, correlation, body);
}

std::string authenticate_request(std::int32_t correlation, std::string_view message) {
  std::string body;
  put_bytes(body, message);
  return framed_request(kSaslAuthenticate, 0, correlation, body);
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

void parse_handshake(std::string_view bytes, std::int32_t correlation, const std::string& mechanism,
                     const std::string& doing) {
  WireAnswer answer(doing, bytes, correlation);
  const std::int32_t error = answer.number(2);
  if (error == 0) return;
  if (error == kIllegalSaslState) {
    throw sdk::Failure(DRIFTD_UNSUPPORTED,
                       doing + ": this listener speaks no SASL" +
                           (doing == kHello ? "; name one that does in settings.scram_hello.servers" : ""));
  }
  if (error != kUnsupportedMechanism) corrupt_answer(doing, "error " + std::to_string(error) + " to the handshake");
  std::string enabled;
  const std::int32_t count = answer.number(4);
  for (int i = 0; i < std::min(count, kMaxMechanisms); ++i) enabled += (i > 0 ? ", " : "") + answer.text(2);
  throw sdk::Failure(DRIFTD_UNSUPPORTED, doing + ": " + mechanism +
                                             " is not enabled at this listener (enabled: " + one_line(enabled) + ")");
}

std::string parse_authenticate(std::string_view bytes, std::int32_t correlation) {
  WireAnswer answer(kHello, bytes, correlation);
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
