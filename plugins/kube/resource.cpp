// SPDX-License-Identifier: Apache-2.0
#include "kube/resource.hpp"

#include "http/http.hpp"

namespace driftd::kube {

std::string Resource::path(const std::string& space, const std::string& name) const {
  std::string out = base;
  if (namespaced && !space.empty()) out += "/namespaces/" + http::escape(space);
  out += "/" + plural;
  if (!name.empty()) out += "/" + http::escape(name);
  return out;
}

std::string Resource::right(const std::string& verb, const std::string& space) const {
  std::string group;  // `/apis/apps/v1` → `.apps`
  if (base.starts_with("/apis/")) group = "." + base.substr(6, base.find('/', 6) - 6);
  const std::string where = !namespaced ? "" : space.empty() ? " in all namespaces" : " in namespace " + space;
  return verb + " " + plural + group + where;
}

std::string Resource::api_version() const { return base.substr(base.starts_with("/apis/") ? 6 : 5); }

std::string query_of(const Resource& resource, const std::string& first) {
  std::string out = "?" + first;
  if (!resource.label_selector.empty()) out += "&labelSelector=" + http::escape(resource.label_selector);
  if (!resource.field_selector.empty()) out += "&fieldSelector=" + http::escape(resource.field_selector);
  return out;
}

bool is_later(const std::string& version, const std::string& than) {
  const auto number = [](const std::string& text) {
    return !text.empty() && text.front() != '0' && text.find_first_not_of("0123456789") == std::string::npos;
  };
  if (!number(version) || !number(than)) return false;
  return version.size() != than.size() ? version.size() > than.size() : version > than;
}

}  // namespace driftd::kube
