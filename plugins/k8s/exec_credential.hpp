// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace driftd::k8s {

/// Who asks, as a secret's text says it: a bearer token, or an ExecCredential of client.authentication.k8s.io (v1,
/// v1beta1) as exec plugins of kubectl print it, with a token or a client certificate. Wiped at its end.
struct Credential {
  std::string token;                       ///< empty: the certificate says who asks
  std::string certificate_pem, key_pem;    ///< both or none
  std::optional<std::int64_t> expires_ns;  ///< since the epoch
  std::string expires;                     ///< as it was written

  Credential() = default;
  Credential(Credential&&) = default;
  Credential& operator=(Credential&&) = default;
  Credential(const Credential&) = delete;
  Credential& operator=(const Credential&) = delete;
  ~Credential();
};

/// Text that begins with `{` is an ExecCredential, other text a token. Pure. UNAUTHENTICATED says what is wrong with
/// it, never what is in it.
Credential parse_credential(std::string_view text);

/// `2026-11-21T20:15:00Z`, `2026-11-21T21:15:00.5+01:00` → nanoseconds since the epoch; nothing: it is no RFC 3339
/// time.
std::optional<std::int64_t> parse_time(std::string_view text);

}  // namespace driftd::k8s
