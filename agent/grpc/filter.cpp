// SPDX-License-Identifier: Apache-2.0
#include "grpc/filter.hpp"

#include <algorithm>

#include "core/audit.hpp"
#include "driftd/v1/event.pb.h"

namespace driftd::rpc {
namespace {

const std::set<std::string> kClasses = {"config", "credential", "endpoint", "health"};
constexpr int kLastType = static_cast<int>(core::ChangeType::config_drift_detected);

/// Returns the class of an event without attribute changes.
std::string class_of(core::ChangeType type) {
  switch (type) {
    case core::ChangeType::credential_rotated:
      return "credential";
    case core::ChangeType::endpoint_changed:
      return "endpoint";
    case core::ChangeType::health_changed:
      return "health";
    default:
      return "config";
  }
}

std::string globless(std::string name) {
  std::erase(name, '*');
  return name == "." || name == ".." ? name + "x" : name;
}

}  // namespace

Status check_names(const std::string& field, const std::vector<std::string>& names) {
  if (names.size() > kMaxListed) {
    return fail(Code::invalid, field + " has " + std::to_string(names.size()) + " entries; the maximum is " +
                                   std::to_string(kMaxListed) + "; use globs such as 'orders-*'");
  }
  for (const auto& name : names) {
    if (name.empty()) return fail(Code::invalid, field + " has an empty entry; leave the list empty to select all");
    const std::string why = core::invalid_name_reason(globless(name));
    if (!why.empty() && !core::is_reserved_name(globless(name))) {
      return fail(Code::invalid,
                  field + " has '" + core::shortened(name, 64) + "', which no backend can match: " + why);
    }
  }
  return {};
}

Status check_types(const std::vector<int>& event_types) {
  if (event_types.size() > kMaxListed) return fail(Code::invalid, "event_types has more than 256 entries");
  for (const int type : event_types) {
    if (type >= 1 && type <= kLastType) continue;
    return fail(Code::invalid, "event_types has " + std::to_string(type) +
                                   "; expected the numbers 1 to 7 of BackendChangeType; leave the list empty to select "
                                   "all");
  }
  return {};
}

Result<Filter> Filter::make(const FilterSpec& spec) {
  DRIFTD_CHECK(check_names("backend_names", spec.backend_names));
  DRIFTD_CHECK(check_names("backend_types", spec.backend_types));
  DRIFTD_CHECK(check_types(spec.event_types));
  Filter out;
  for (const auto& one : spec.change_classes) {
    if (!kClasses.contains(one)) {
      return fail(Code::invalid, "change_classes has '" + core::shortened(one, 64) +
                                     "'; expected config, credential, endpoint or health");
    }
    out.classes_.insert(one);
  }
  for (const auto& name : spec.backend_names) out.names_.push_back(core::Glob::of_name(name));
  out.backend_types_.insert(spec.backend_types.begin(), spec.backend_types.end());
  for (const int type : spec.event_types) out.types_.insert(static_cast<core::ChangeType>(type));
  out.agent_events_ = spec.agent_events;
  return out;
}

bool Filter::matches(const core::StoredEvent& event) const {
  if (event.agent_event) return agent_events_;
  if (!types_.empty() && !types_.contains(event.type)) return false;
  if (!backend_types_.empty() && !backend_types_.contains(event.backend_type)) return false;
  const auto fits = [&event](const core::Glob& name) { return name.matches(event.backend); };
  if (!names_.empty() && std::none_of(names_.begin(), names_.end(), fits)) return false;
  return classes_.empty() || matches_class(event);
}

bool Filter::matches_class(const core::StoredEvent& event) const {
  v1::BackendChangeEvent parsed;
  if (!parsed.ParseFromString(event.payload)) return true;  // what cannot be told is shown
  if (parsed.changes().empty()) return classes_.contains(class_of(event.type));
  return std::any_of(parsed.changes().begin(), parsed.changes().end(),
                     [this](const auto& change) { return classes_.contains(change.change_class()); });
}

}  // namespace driftd::rpc
