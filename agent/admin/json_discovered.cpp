// SPDX-License-Identifier: Apache-2.0
#include "admin/json.hpp"

namespace driftd::admin {
namespace {

using core::Value;

Value object_of(const std::map<std::string, std::string>& pairs) {
  Value::Object out;
  for (const auto& [key, value] : pairs) out.emplace(key, value);
  return out;
}

}  // namespace

Value to_json(const core::Diagnostic& d) {
  return Value::Object{{"code", std::string(render(d.code))},
                       {"kind", d.kind},
                       {"id", d.id},
                       {"path", d.path},
                       {"message", d.text},
                       {"right", d.right}};
}

Value to_json(const core::Discovered& b) {
  return Value::Object{{"name", b.name},
                       {"type", b.type},
                       {"external", Value(b.external)},
                       {"version", b.version},
                       {"endpoints", list_of(b.endpoints)},
                       {"capabilities", list_of(b.capabilities)},
                       {"credentials", object_of(b.credentials)},
                       {"config", shown(b.config)},
                       {"labels", object_of(b.labels)},
                       {"metadata", object_of(b.metadata)},
                       {"origin", b.origin},
                       {"revision", b.revision},
                       {"observed_at", time(b.observed_ns)}};
}

Value to_json(const core::DiscoverOutcome& outcome) {
  return Value::Object{{"complete", Value(outcome.complete)},
                       {"discovered", list_of(outcome.backends)},
                       {"diagnostics", list_of(outcome.diagnostics)}};
}

}  // namespace driftd::admin
