// SPDX-License-Identifier: Apache-2.0
#include "k8s/field_owners.hpp"

#include <algorithm>

#include "k8s/json_access.hpp"

namespace driftd::k8s {
namespace {

/// Returns the element whose keys are those of a `k:` entry; null if there is none.
const json& element_with(const json& all, const json& keys) {
  static const json kNull;
  if (!all.is_array() || !keys.is_object()) return kNull;
  const auto at = std::find_if(all.begin(), all.end(), [&](const json& element) {
    return element.is_object() && std::all_of(keys.items().begin(), keys.items().end(), [&](const auto& key) {
             return element.value(key.key(), json()) == key.value();
           });
  });
  return at == all.end() ? kNull : *at;
}

bool has(const json& all, const json& value) {
  return all.is_array() && std::find(all.begin(), all.end(), value) != all.end();
}

const json& member_of(const json& of, const std::string& name) {
  static const json kNull;
  return of.is_object() && of.contains(name) ? of.at(name) : kNull;
}

/// Returns the first field below `fields` whose value differs, as a path; empty if there is none. `fields` is a part of
/// fieldsV1: `f:NAME`, `k:{KEYS}` and `v:VALUE` lead down, `.` is the place itself.
std::string touched(const json& now, const json& wanted, const json& fields, const std::string& at) {
  if (now == wanted || !fields.is_object()) return {};
  bool leads_down = false;
  for (const auto& [step, below] : fields.items()) {
    if (step.size() < 2 || step[1] != ':') continue;
    leads_down = true;
    const std::string rest = step.substr(2);
    std::string found;
    if (step[0] == 'f') {
      found = touched(member_of(now, rest), member_of(wanted, rest), below, at + "." + rest);
    } else {
      const json key = json::parse(rest, nullptr, false);
      if (step[0] == 'k')
        found = touched(element_with(now, key), element_with(wanted, key), below, at + "[" + rest + "]");
      else if (step[0] == 'v' && has(now, key) != has(wanted, key))
        found = at + "[=" + rest + "]";
    }
    if (!found.empty()) return found;
  }
  // The place itself, or all of a value that is one field (an atomic list).
  const bool comes_or_goes = now.is_null() != wanted.is_null();
  return !leads_down || (comes_or_goes && fields.contains(".")) ? at : std::string();
}

}  // namespace

std::vector<FieldOwner> owners_of_change(const json& now, const json& wanted) {
  std::vector<FieldOwner> out;
  for (const auto& entry : list(now, {"metadata", "managedFields"})) {
    const std::string manager = text(entry, {"manager"});
    const bool known =
        std::any_of(out.begin(), out.end(), [&](const FieldOwner& one) { return one.manager == manager; });
    if (known) continue;
    const std::string field = touched(now, wanted, find(entry, {"fieldsV1"}), "");
    if (!field.empty()) out.push_back({manager, field});
  }
  return out;
}

}  // namespace driftd::k8s
