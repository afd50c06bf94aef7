// SPDX-License-Identifier: Apache-2.0
// Addresses of events: subjects, CloudEvents attributes, routes.
#include "core/event/event.hpp"

#include <algorithm>
#include <set>

#include "core/value/path.hpp"

namespace driftd::core {
namespace {

bool plain(unsigned char c) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
}

void escape(std::string& out, unsigned char c) {
  constexpr char kHex[] = "0123456789ABCDEF";
  out += {'=', kHex[c >> 4], kHex[c & 15]};
}

bool any_glob(const std::vector<std::string>& globs, const std::string& name) {
  return globs.empty() || std::any_of(globs.begin(), globs.end(), [&](const std::string& glob) {
           return Glob::of_name(glob).matches(std::string_view(name));
         });
}

bool has_all(const std::map<std::string, std::string>& labels, const std::map<std::string, std::string>& wanted) {
  return std::all_of(wanted.begin(), wanted.end(), [&](const auto& label) {
    const auto found = labels.find(label.first);
    return found != labels.end() && found->second == label.second;
  });
}

}  // namespace

bool is_reserved_name(std::string_view name) { return name == "type" || name == "source"; }

std::string invalid_name_reason(std::string_view name) {
  if (is_reserved_name(name)) return "the name is reserved (subjects backend.type.… and backend.source.…)";
  if (name.size() > 128) return "it is longer than 128 bytes";
  for (const char c : name) {
    if (static_cast<unsigned char>(c) <= ' ' || c == 0x7F) return "it contains a space or control character";
    if (c == '/' || c == '*' || c == '>') return std::string("it contains '") + c + "'";
  }
  return "";
}

std::string subject_token(std::string_view name) {
  if (name.empty()) return "=";  // no other name gives this: an escaping `=` is followed by two hex digits
  std::string out;
  for (const char c : name) {
    if (plain(static_cast<unsigned char>(c))) {
      out += c;
    } else {
      escape(out, static_cast<unsigned char>(c));
    }
  }
  return out;
}

std::string subject_of(const StoredEvent& event) {
  if (event.agent_event) return "driftd.agent." + subject_token(event.backend) + "." + event.what;
  std::string name = subject_token(event.backend);
  if (is_reserved_name(event.backend)) {
    std::string first;
    escape(first, static_cast<unsigned char>(name[0]));
    name = first + name.substr(1);
  }
  return "backend." + name + "." + event.what;
}

std::string cloudevent_source(const StoredEvent& event) { return "//" + event.cluster + "/driftd/" + event.provider; }

std::string cloudevent_type(const StoredEvent& event) {
  return (event.agent_event ? "io.driftd.agent." : "io.driftd.backend.") + event.what + ".v1";
}

std::string cloudevent_subject(const StoredEvent& event) {
  return event.resource.empty() ? event.backend : event.backend + "/" + event.resource;
}

std::vector<std::string> resolve_routes(const std::vector<Route>& routes, const std::string& what,
                                        const std::string& backend, const std::optional<ResourceId>& resource,
                                        const std::map<std::string, std::string>& labels) {
  std::set<std::string> out;
  for (const auto& route : routes) {
    const bool kind = route.kind.empty() || (resource && any_glob(route.kind, resource->kind));
    if (kind && any_glob(route.change, what) && any_glob(route.backend, backend) && has_all(labels, route.labels)) {
      out.insert(route.to.begin(), route.to.end());
    }
  }
  return {out.begin(), out.end()};
}

}  // namespace driftd::core
