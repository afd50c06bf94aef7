// SPDX-License-Identifier: Apache-2.0
// The parts of Kafka's protocol and of RFC 5802 that a SCRAM hello and a login need. Pure: no I/O.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace driftd::kafka {

/// What a server sends about a credential before any proof (RFC 5802, server-first-message).
struct ServerFirst {
  std::string salt;             ///< base64, as received
  std::int32_t iterations = 0;  ///< of the key derivation
};

/// Build the requests SaslHandshake v1 and SaslAuthenticate v0, each with its length in front. The answer repeats
/// `correlation`.
std::string handshake_request(std::int32_t correlation, const std::string& mechanism);
std::string authenticate_request(std::int32_t correlation, std::string_view message);
/// `n,,n=<user>,r=<nonce>`
std::string client_first(const std::string& user, const std::string& nonce);

/// Checks the answer to SaslHandshake. Throws UNSUPPORTED (the listener does not offer the mechanism, or has no SASL)
/// or CORRUPT. `doing` begins the text.
void parse_handshake(std::string_view answer, std::int32_t correlation, const std::string& mechanism,
                     const std::string& doing = "SCRAM hello");
/// Returns the server's message. Throws UNAVAILABLE (no such credential, or the broker does not reveal it) or CORRUPT.
std::string parse_authenticate(std::string_view answer, std::int32_t correlation);
/// Parses `r=<nonce>…,s=<salt>,i=<iterations>`. Throws CORRUPT, whose text holds nothing of the message.
ServerFirst parse_server_first(std::string_view message, std::string_view nonce);

}  // namespace driftd::kafka
