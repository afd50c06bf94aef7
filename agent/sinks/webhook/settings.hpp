// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <map>
#include <string>
#include <vector>

namespace driftd::sinks {

/// `type: webhook`. Secrets are clear text here and appear in no log or error.
struct WebhookSettings {
  std::string url;                   ///< https://…; http:// only to loopback and with `allow_http_loopback`
  std::vector<std::string> secrets;  ///< `whsec_<base64>` or raw bytes; two while a key is rotated, the new one first
  bool allow_http_loopback = false;
  std::vector<std::string> allow;              ///< CIDRs that may be connected although they are private: `10.1.0.0/16`
  std::map<std::string, std::string> headers;  ///< added to each request; values may be secret
  std::string ca_file;                         ///< empty: the system's CA certificates
  std::chrono::milliseconds connect_timeout{5'000};
  std::chrono::milliseconds total_timeout{20'000};
  int max_in_flight = 8;
};

}  // namespace driftd::sinks
