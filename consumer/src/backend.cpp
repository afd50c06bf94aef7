// SPDX-License-Identifier: Apache-2.0
#include "driftd/consumer/backend.hpp"

#include <charconv>

namespace driftd::consumer {
namespace {

/// Host and port of the first of `host:port,host:port`. A port that is not a number from 1 to 65535 is 0.
std::pair<std::string, int> first_of(const std::string& endpoints) {
  std::string first = endpoints.substr(0, endpoints.find(','));
  if (first.starts_with('[')) {
    const std::size_t end = first.find(']');
    if (end == first.npos) return {first, 0};
    const std::string rest = first.substr(end + 1);
    return {first.substr(1, end - 1), rest.starts_with(':') ? first_of("h" + rest).second : 0};
  }
  const std::size_t colon = first.rfind(':');
  if (colon == first.npos || first.find(':') != colon) return {first, 0};  // no port, or a bare IPv6 address
  int port = 0;
  const char* end = first.data() + first.size();
  const auto [stop, error] = std::from_chars(first.data() + colon + 1, end, port);
  const bool good = error == std::errc() && stop == end && port > 0 && port <= 65'535;
  return {first.substr(0, colon), good ? port : 0};
}

}  // namespace

std::string SlotConfig::host() const { return first_of(backend.endpoint).first; }
int SlotConfig::port() const { return first_of(backend.endpoint).second; }

const Secret& SlotConfig::credential(const std::string& member) const {
  static const Secret kNone;
  const auto found = credentials.find(member);
  return found == credentials.end() ? kNone : found->second;
}

}  // namespace driftd::consumer
