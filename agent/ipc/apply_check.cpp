// SPDX-License-Identifier: Apache-2.0
#include "ipc/apply_check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/redact.hpp"
#include "core/value/parse_limits.hpp"
#include "core/value/value.hpp"
#include "ipc/limits.hpp"

namespace driftd::ipc {
namespace {

/// Returns what is wrong with a value; empty if nothing is. An empty text stands for an absent attribute.
std::string fault_of(const std::string& json) {
  if (json.empty()) return {};
  const auto value = core::parse(json, core::kBodyLimits);
  if (!value) return " has a value that is not JSON";
  if (core::holds_withheld(*value)) return " holds a secret or a withheld value, of which only a digest is known";
  return {};
}

Status check_changes(const ApplyCall& call, const std::string& name) {
  std::set<std::string_view> paths;
  std::size_t bytes = 0;
  for (const auto& change : call.changes) {
    if (change.path.empty() || change.path == core::kIdentityPath) {
      return fail(Code::invalid, name + ": a resource is never created or deleted; expected the path of an attribute");
    }
    if (!paths.insert(change.path).second) return fail(Code::invalid, name + ": " + change.path + " comes twice");
    for (const auto* value : {&change.old_value, &change.new_value}) {
      const std::string fault = fault_of(*value);
      if (!fault.empty()) return fail(Code::invalid, name + ": " + change.path + fault + "; it cannot be put back");
    }
    bytes += change.path.size() + change.old_value.size() + change.new_value.size();
  }
  if (bytes <= kMaxApplyBytes) return {};
  return fail(Code::invalid,
              fmt::format("{}: paths and values have {} bytes; the maximum is {}", name, bytes, kMaxApplyBytes));
}

}  // namespace

Status check(const ApplyCall& call) {
  const std::string name = "apply to " + core::render(call.id);
  if (call.changes.empty() || call.changes.size() > kMaxApplyChanges) {
    return fail(Code::invalid,
                fmt::format("{}: expected 1 to {} changes, found {}", name, kMaxApplyChanges, call.changes.size()));
  }
  if (call.idempotency_key.empty() || call.idempotency_key.size() > kMaxApplyKey) {
    return fail(Code::invalid, fmt::format("{}: expected an idempotency key of 1 to {} bytes, found {}", name,
                                           kMaxApplyKey, call.idempotency_key.size()));
  }
  return check_changes(call, name);
}

}  // namespace driftd::ipc
