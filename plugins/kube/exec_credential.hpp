// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace driftd::kube {

/// A credential as the text of a secret holds it: a bearer token, or an ExecCredential of client.authentication.k8s.io
/// (v1, v1beta1) as exec plugins of kubectl print it, with a token or a client certificate. Wiped by the destructor.
struct Credential {
  std::string token;                       ///< empty if the credential is a certificate
  std::string certificate_pem, key_pem;    ///< both or none
  std::optional<std::int64_t> expires_ns;  ///< since the epoch
  std::string expires;                     ///< the same as text

  Credential() = default;
  Credential(Credential&&) = default;
  Credential& operator=(Credential&&) = default;
  Credential(const Credential&) = delete;
  Credential& operator=(const Credential&) = delete;
  ~Credential();
};

/// Parses a text that begins with `{` as an ExecCredential, any other as a token. Pure. Throws UNAUTHENTICATED, whose
/// text says what is wrong and never quotes the content.
Credential parse_credential(std::string_view text);

/// Parses `2026-11-21T20:15:00Z` or `2026-11-21T21:15:00.5+01:00` to nanoseconds since the epoch. Returns nullopt if
/// the text is not an RFC 3339 time.
std::optional<std::int64_t> parse_time(std::string_view text);

}  // namespace driftd::kube
