// SPDX-License-Identifier: Apache-2.0
#include "keycloak/names.hpp"

namespace driftd::keycloak {
namespace {

std::string escaped(std::string_view name) {
  std::string out;
  for (const char c : name) {
    if (c == '/')
      out += "%2F";
    else if (c == '%')
      out += "%25";
    else
      out += c;
  }
  return out;
}

}  // namespace

std::string id_of(const std::vector<std::string>& parts) {
  std::string out;
  for (const auto& part : parts) {
    if (&part != &parts.front()) out += '/';
    out += escaped(part);
  }
  return out;
}

std::vector<std::string> parts_of(std::string_view id) {
  std::vector<std::string> out(1);
  while (!id.empty()) {
    if (id.starts_with("%2F") || id.starts_with("%25")) {
      out.back() += id[2] == 'F' ? '/' : '%';
      id.remove_prefix(3);
      continue;
    }
    if (id.front() == '%') return {};
    if (id.front() == '/')
      out.emplace_back();
    else
      out.back() += id.front();
    id.remove_prefix(1);
  }
  for (const auto& part : out) {
    if (part.empty()) return {};
  }
  return out;
}

}  // namespace driftd::keycloak
