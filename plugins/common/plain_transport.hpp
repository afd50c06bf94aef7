// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "driftd/sdk/call.hpp"

namespace driftd::common {

/// Returns true if what is sent to `host` never leaves this machine: a Unix socket, a loopback address or the name of
/// one. Pure.
/// An empty host counts as local. Names are not resolved, except that `localhost` is known.
inline bool is_local_host(std::string_view host) {
  if (host.starts_with('[')) host = host.substr(1, host.find(']') - 1);
  return host.empty() || host.starts_with('/') || host == "localhost" || host == "::1" || host.starts_with("127.");
}
/// Returns the host of `http://host:port/path`; empty if the URL is not one of plain HTTP. Pure.
/// The host of an IPv6 address keeps its brackets. User and port are left out.
inline std::string plain_http_host(std::string_view url) {
  constexpr std::string_view kPlain = "http://";
  if (!url.starts_with(kPlain)) return {};
  url = url.substr(kPlain.size());
  url = url.substr(0, url.find_first_of("/?#"));
  if (const auto at = url.rfind('@'); at != url.npos) url = url.substr(at + 1);
  if (url.starts_with('[')) return std::string(url.substr(0, url.find(']') + 1));
  return std::string(url.substr(0, url.find(':')));
}

/// Logs a warning, once when an instance is opened, that `what` goes to `where` unencrypted. `remedy` names the
/// setting.
/// `what` is the plural subject of the sentence: `the password and all that is read`.
inline void warn_of_plain_transport(sdk::Call& call, const std::string& what, const std::string& where,
                                    const std::string& remedy) {
  call.log(DRIFTD_LOG_WARN,
           what + " go to " + where + " without TLS: whoever is on the way can read and change them; " + remedy);
}

}  // namespace driftd::common
