// SPDX-License-Identifier: Apache-2.0
// CloudEvents attributes and routes of events.
#include "core/event/event.hpp"

#include <algorithm>
#include <set>

#include "core/value/path.hpp"

namespace driftd::core {
namespace {

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
