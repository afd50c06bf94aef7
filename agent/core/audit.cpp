// SPDX-License-Identifier: Apache-2.0
#include "core/audit.hpp"

#include "base/escape.hpp"
#include "core/drift.hpp"
#include "core/redact.hpp"
#include "core/value/value.hpp"

namespace driftd::core {
namespace {

constexpr std::size_t kMaxValue = 1024;  // bytes of one value
constexpr std::size_t kMaxChanges = 64;

std::string shown(const Change& change, const std::optional<std::string>& json) {
  if (!json) return {};
  return change.redacted ? "\"[REDACTED]\"" : presentable_json(*json);
}

/// Renders both values as JSON. A value that had to be cut becomes a string.
void put_sides(const Change& change, Value::Object& out) {
  const std::string before = shown(change, change.old_value), now = shown(change, change.new_value);
  const auto cut = around_difference(before, now, kMaxValue);
  const auto put = [&](const char* name, const std::string& text, const std::string& whole) {
    auto value = text == whole ? parse(whole) : Result<Value>(Value(text));
    out.emplace(name, value ? std::move(*value) : Value("[REDACTED]"));
  };
  if (change.old_value) put("old", cut.first, before);
  if (change.new_value) put("new", cut.second, now);
}

}  // namespace

std::string shortened(std::string text, std::size_t bytes) {
  if (text.size() <= bytes) return text;
  return std::string(front(text, bytes)) + "…";
}

std::string audit_changes(const std::vector<Change>& changes) {
  Value::Array out;
  for (const auto& change : changes) {
    if (out.size() == kMaxChanges) {
      out.push_back(Value::Object{{"more", Value::Number{std::to_string(changes.size() - kMaxChanges)}}});
      break;
    }
    Value::Object one{{"path", shortened(change.path, kMaxValue)}};
    put_sides(change, one);
    out.emplace_back(std::move(one));
  }
  return out.empty() ? std::string() : render(Value(std::move(out)));
}

AuditEntry make_audit_entry(const Drift& drift, const std::string& backend) {
  AuditEntry out;
  out.subject = drift.id;
  out.backend = backend;
  out.resource = render(drift.resource);
  out.digest = drift.digest;
  out.changes = audit_changes(drift.changes);
  return out;
}

}  // namespace driftd::core
