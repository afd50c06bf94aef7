// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.hpp"

namespace driftd::rpc {

inline constexpr const char* kSystemCa = "/etc/ssl/certs/ca-certificates.crt";
inline constexpr unsigned kFollowFilesSeconds = 5;  ///< how soon new certificate files are used

/// Returns true if HOST:PORT is this machine by its form: localhost, 127.0.0.0/8 or [::1].
bool is_loopback(const std::string& host_and_port);

/// Checks that the certificate and the key are PEM files that belong together, and that `ca` holds certificates; empty
/// names are skipped. Returns `invalid` or `denied` with the setting (`prefix` and `cert`, `key` or `ca_name`:
/// `grpc.tls.cert`,
/// `--tls-cert`), the file and what is wrong.
Status check_files(const std::string& prefix, const std::string& cert, const std::string& key, const std::string& ca,
                   const std::string& ca_name);

}  // namespace driftd::rpc
