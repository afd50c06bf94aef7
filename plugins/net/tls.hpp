// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace driftd::net {

/// TLS 1.2 and newer. The files are PEM.
struct Tls {
  std::string ca;                  ///< empty: the CAs of the system
  std::string certificate, key;    ///< client certificate and key; both or none
  std::string key_password_token;  ///< for sdk::Call::secret; empty: the key is not encrypted
  std::string server_name;         ///< name that the server's certificate must carry; empty: the host
  bool verify = true;              ///< verify chain and name of the server's certificate
};

}  // namespace driftd::net
