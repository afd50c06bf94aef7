// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace driftd::common {

/// A URL as it may be shown: without user, password, query and fragment, which hold what opens the door. Also of a text that
/// no parser takes for a URL: rather too little of it is shown. Pure.
inline std::string shown_url(std::string_view url) {
  const auto scheme = url.find("://");
  const std::size_t begin = scheme == url.npos ? 0 : scheme + 3;
  std::string_view rest = url.substr(begin);
  const std::string_view authority = rest.substr(0, rest.find_first_of("/?#"));
  const auto colon = authority.rfind(':');
  const bool v6 = authority.starts_with('[') && authority.ends_with(']');
  const bool port = colon == authority.npos || v6 || authority.find_first_not_of("0123456789", colon + 1) == authority.npos;
  // `user:pass/word@host`: what looks like a host with an odd port is the beginning of a password
  const auto at = port ? authority.rfind('@') : rest.rfind('@');
  if (at != rest.npos) rest = rest.substr(at + 1);
  else if (!port) rest = rest.substr(0, colon);
  rest = rest.substr(0, rest.find_first_of("?#"));
  return std::string(url.substr(0, begin)).append(rest);
}

}  // namespace driftd::common
