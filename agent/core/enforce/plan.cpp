// SPDX-License-Identifier: Apache-2.0
#include "core/enforce/plan.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "core/judge/stages.hpp"
#include "core/redact.hpp"
#include "core/scope.hpp"

namespace driftd::core {
namespace {

tl::unexpected<Error> refuse(const Drift& drift, const std::string& why) {
  return fail(Code::invalid, name_of(drift) + " cannot be put back: " + why);
}

Status check_drift(const Drift& drift) {
  if (is_own_kind(drift.resource.kind) || drift.resource.kind == kRegistration)
    return refuse(drift, "it is about driftd's own registry, not about an attribute of a system");
  if (drift.operation != Operation::changed) {
    return refuse(drift, "the resource was " + std::string(render(drift.operation)) +
                             ", and driftd neither creates nor deletes resources; do that with the system's own tools");
  }
  if (drift.cls == ChangeClass::credential) return refuse(drift, "credentials are never put back");
  if (drift.cls == ChangeClass::health) return refuse(drift, "health is not a value that can be set");
  if (!drift.open()) return refuse(drift, "it is already " + std::string(render(drift.status)));
  if (drift.stale_since_ns) {
    return refuse(
        drift, "some of it cannot be read since " + render_time(*drift.stale_since_ns) + "; `driftd status` shows why");
  }
  if (drift.changes.empty()) return refuse(drift, "it lists no values");
  return {};
}

/// Returns why this attribute is never written. Empty if it may be.
std::string unwritable(const AttributeRule& rule, ChangeClass cls) {
  if (cls == ChangeClass::credential || rule.sensitive || rule.write_only) return "it holds a credential";
  if (rule.computed) return "the system computes it";
  if (rule.is_volatile) return "it changes by itself";
  return {};
}

std::string unusable(const std::optional<std::string>& json) {
  if (!json) return {};
  const Result<Value> value = parse(*json);
  if (!value) return "its value is not valid JSON";
  return holds_withheld(*value) ? "its value is withheld, and driftd knows only its digest" : "";
}

std::string fault_of(const Change& change, const KindSchema& schema) {
  if (change.path.empty() || change.path == kIdentityPath) return "it is the resource's identity";
  if (change.redacted) return "its value is withheld, and driftd knows only its digest";
  const Path path = attribute_path(change.path);
  if (path.empty()) return "its path cannot be read";
  if (auto why = unwritable(schema.rule(path), change.cls); !why.empty()) return why;
  if (auto why = unusable(change.old_value); !why.empty()) return why;
  return unusable(change.new_value);
}

/// Assigns objects member by member, because a change lists only what is judged.
Status assign_into(Value& root, const Path& path, const Value& value) {
  const Value* there = find(root, path);
  if (!value.object() || there == nullptr || !there->object()) return assign(root, path, &value);
  for (const auto& [name, member] : *value.object()) DRIFTD_CHECK(assign_into(root, path.child(name), member));
  return {};
}

bool is_at_or_below(const std::string& path, const std::string& above) {
  return path.starts_with(above) &&
         (path.size() == above.size() || path[above.size()] == '.' || path[above.size()] == '[');
}

bool is_unread(const Observation& seen, const Path& path) {
  return std::any_of(seen.unread.begin(), seen.unread.end(), [&](const Unread& unread) {
    const auto glob = Glob::parse_path(unread.path);
    return !glob || glob->matches(path) || glob->lies_below(path);
  });
}

/// Compares bodies that differ at most at one path.
class Standing {
 public:
  Standing(const Observation& seen, const Value& body, const KindSchema& schema, const RedactionKeys* keys)
      : seen_(seen),
        body_(body),
        schema_(schema) {
    options_.old_revision = schema.revision();
    options_.id = seen.id;
    options_.keys = keys;
  }
  /// Returns true if the body has this value at the path of the change.
  bool has(const Change& change, const std::optional<std::string>& json) const {
    const Path path = attribute_path(change.path);
    if (is_unread(seen_, path)) return false;
    if (!json && find(body_, path) == nullptr) return true;
    Value wanted = body_;
    if (!json) {
      if (!assign(wanted, path, nullptr)) return false;
    } else {
      const Result<Value> value = parse(*json);
      if (!value || !assign_into(wanted, path, *value)) return false;
    }
    const Difference found = diff(wanted, body_, schema_, options_);
    return found.changes.empty() &&
           std::none_of(found.unknown.begin(), found.unknown.end(), [&](const UnknownPath& unknown) {
             return is_at_or_below(unknown.path, change.path) || is_at_or_below(change.path, unknown.path);
           });
  }
  std::string shown(const Change& change) const {
    const Value* there = find(body_, attribute_path(change.path));
    return change.path + " is " + (there == nullptr ? "absent" : shortened(presentable(*there), 200));
  }

 private:
  const Observation& seen_;
  const Value& body_;
  const KindSchema& schema_;
  DiffOptions options_;
};

constexpr std::string_view kOwner = "driftd.io/owner";

/// Looks into the objects that systems keep marks in, one below the other.
std::string find_mark(const Value& value, int depth) {
  if (const Value* mark = value.find(kOwner); mark != nullptr && mark->string() != nullptr) return *mark->string();
  if (depth == 0) return {};
  for (const std::string_view below : {"labels", "annotations", "tags", "metadata"}) {
    const Value* object = value.find(below);
    if (object == nullptr || object->object() == nullptr) continue;
    if (auto mark = find_mark(*object, depth - 1); !mark.empty()) return mark;
  }
  return {};
}

}  // namespace

std::string never_put_back(const Change& change, Operation operation, const KindSchema& schema) {
  if (operation != Operation::changed) return "the resource was " + std::string(render(operation));
  return fault_of(change, schema);
}

Result<std::vector<Change>> plan_enforcement(const Drift& drift, const KindSchema& schema) {
  DRIFTD_CHECK(check_drift(drift));
  std::vector<Change> out;
  for (const auto& change : drift.changes) {
    if (const auto fault = fault_of(change, schema); !fault.empty())
      return refuse(drift, "'" + change.path + "': " + fault);
    Change back = change;
    std::swap(back.old_value, back.new_value);
    out.push_back(std::move(back));
  }
  return out;
}

std::vector<Change> as_read(std::vector<Change> plan, const Observation& seen) {
  const Result<Value> body = parse(seen.body);
  if (!body) return plan;
  for (auto& change : plan) {
    const Value* there = find(*body, attribute_path(change.path));
    const Result<Value> known = parse(change.old_value.value_or("null"));
    if (there == nullptr || !change.old_value || !known) continue;
    // of an object, the change may list less than there is
    const bool simple = !there->object() && !there->array() && !known->object() && !known->array();
    if (simple) change.old_value = render(*there);
  }
  return plan;
}

std::vector<Change> reversed(std::vector<Change> changes) {
  for (auto& change : changes) std::swap(change.old_value, change.new_value);
  return changes;
}

StandingReport standing_of(const std::vector<Change>& plan, const Observation& seen, const KindSchema& schema,
                           const RedactionKeys* keys) {
  StandingReport out;
  const Result<Value> body = parse(seen.body);
  if (!body || body->object() == nullptr) {
    out.text = "the body of " + render(seen.id) + " cannot be read";
    return out;
  }
  const Standing standing(seen, *body, schema, keys);
  std::size_t found = 0;
  for (const auto& change : plan) {
    out.unread = out.unread || is_unread(seen, attribute_path(change.path));
    if (standing.has(change, change.new_value)) {
      out.restored.push_back(change);
      continue;
    }
    found += standing.has(change, change.old_value) ? 1 : 0;
    out.text += (out.text.empty() ? "" : ", ") + standing.shown(change);
  }
  if (out.restored.size() == plan.size()) out.standing = PlanStanding::restored;
  if (found == plan.size()) out.standing = PlanStanding::found;
  return out;
}

std::string owner_mark(const StoredResource& resource) {
  const auto told = resource.metadata.find(std::string(kOwner));
  if (told != resource.metadata.end()) return told->second;
  const Result<Value> body = parse(resource.observed.value_or("{}"));
  return body ? find_mark(*body, 2) : std::string();
}

std::string writer_of(const StoredResource& resource) {
  constexpr std::array<std::string_view, 10> kTold{"manager", "user",   "client",     "operation",  "time",
                                                   "source",  "serial", "sourcefile", "sourceline", "run"};
  std::string out;
  for (const auto& name : kTold) {
    const auto told = resource.metadata.find(std::string(name));
    if (told == resource.metadata.end() || told->second.empty()) continue;
    out += (out.empty() ? "" : ", ") + std::string(name) + " " + shortened(told->second, 100);
  }
  return out;
}

}  // namespace driftd::core
