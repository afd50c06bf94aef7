// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "common/settings_reader.hpp"
#include "net/tls.hpp"

namespace driftd::net {

/// Reads `ca`, `certificate`, `key` and `server_name`. Throws INVALID if only one of certificate and key is given.
/// The caller reads the members that only its provider has, and calls finish().
inline Tls read_tls(common::SettingsReader& from) {
  Tls out;
  out.ca = from.text("ca");
  out.certificate = from.text("certificate");
  out.key = from.text("key");
  out.server_name = from.text("server_name");
  constexpr const char* kExpected = "a certificate and its key, or neither";
  if (out.key.empty() && !out.certificate.empty()) {
    from.refuse("certificate", kExpected, "only the certificate", "add key to " + from.where());
  }
  if (out.certificate.empty() && !out.key.empty()) {
    from.refuse("certificate", kExpected, "only the key", "add certificate to " + from.where());
  }
  return out;
}

}  // namespace driftd::net
