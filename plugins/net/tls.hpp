// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace driftd::net {

/// TLS 1.2 and newer. The files are PEM.
struct Tls {
  std::string ca;                  ///< empty: the system's
  std::string certificate, key;    ///< of the client; both or none
  std::string key_password_token;  ///< for sdk::Call::secret; empty: the key is not encrypted
  std::string server_name;         ///< what the server's certificate must carry; empty: the host
  bool verify = true;              ///< chain and name of the server's certificate
};

}  // namespace driftd::net
