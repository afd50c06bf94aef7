// SPDX-License-Identifier: Apache-2.0
// The few bytes of Kafka's protocol and of RFC 5802 that a SCRAM hello needs. Pure: no I/O.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace driftd::kafka {

inline constexpr std::size_t kFrameHead = 4;          ///< bytes of the length before each frame
inline constexpr std::size_t kMostAnswer = 16 << 10;  ///< of one answer, more is refused unread

/// What a server says of a credential before it has seen any proof (RFC 5802, server-first-message).
struct ServerFirst {
  std::string salt;  ///< base64, as it came
  std::int32_t iterations = 0;
};

/// SaslHandshake v1 and SaslAuthenticate v0, each with its length in front. `correlation` comes back in the answer.
std::string handshake_request(std::int32_t correlation, const std::string& mechanism);
std::string authenticate_request(std::int32_t correlation, std::string_view message);
/// `n,,n=<user>,r=<nonce>`
std::string client_first(const std::string& user, const std::string& nonce);

/// How many bytes follow these four. Throws sdk::Failure CORRUPT when that is too much or less than nothing.
std::size_t answer_size(std::string_view head);
/// Throws sdk::Failure: UNSUPPORTED (the listener does not have the mechanism, or speaks no SASL), CORRUPT.
void parse_handshake(std::string_view answer, std::int32_t correlation, const std::string& mechanism);
/// The server's message. Throws sdk::Failure: UNAVAILABLE (there is no such credential, or the broker will not say),
/// CORRUPT.
std::string parse_authenticate(std::string_view answer, std::int32_t correlation);
/// `r=<nonce>…,s=<salt>,i=<iterations>`. Throws sdk::Failure CORRUPT, whose text holds nothing of the message.
ServerFirst parse_server_first(std::string_view message, std::string_view nonce);

}  // namespace driftd::kafka
