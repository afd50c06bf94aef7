// SPDX-License-Identifier: Apache-2.0
// Stage of judge() (README.md): turns a reading into changes, grouped by the drift that they belong to.
#include <algorithm>
#include <iterator>
#include <set>

#include "core/enforce/plan.hpp"
#include "core/judge/stages.hpp"
#include "core/redact.hpp"

namespace driftd::core {
namespace {

std::string text_of(const std::string& value) { return render(Value(value)); }

/// Takes one reading through diff, ignore rules, demotions, policies and expectations.
class ChangeCollector {
 public:
  ChangeCollector(const JudgeContext& context, const StoredResource& stored, const Present* seen, Judgement& out,
                  ChangeSet& change_set)
      : context_(context),
        stored_(stored),
        seen_(seen),
        out_(out),
        change_set_(change_set) {
    const auto found = context.former.find(stored.schema_revision);
    if (found != context.former.end() && stored.schema_revision != context.schema->revision()) {
      former_ = found->second.get();
    }
  }

  void created(const Value& body);
  void deleted(const Value& baseline);
  void declared_but_absent();
  void compare(Value baseline, const Value& body);
  void expectations(const Value& body);
  void keep_unreadable();

 private:
  const KindSchema& schema() const { return *context_.schema; }
  ChangeClass kind_class() const { return schema().cls(Path{}); }
  ChangeClass class_of(const Change& change, const Path& path) const;
  bool schema_changed(const std::string& path) const;
  bool ignored(Change& change);
  const Present::DemotedChange* demoted(const Change& change, Against against);
  Operation detect_operation() const;
  bool add_to_group(Change change, Against against, Operation operation, std::string reason = {});
  bool add_lifecycle_change(Operation operation, std::vector<Change> changes, const std::string& name);
  void rebaseline(Value& baseline, const Change& change, const char* why);
  void keep_was_unread(const Value& baseline);
  std::vector<std::string> superseded_by_schema();
  ExpectedAttributes expected_attributes(const Value& body);
  std::string declared_reason(const std::string& path) const;

  const JudgeContext& context_;
  const StoredResource& stored_;
  const Present* seen_;
  Judgement& out_;
  ChangeSet& change_set_;
  const KindSchema* former_ = nullptr;
  std::map<std::string, std::string> declared_by_;  ///< path → who declares it
};

/// A digest without a class in the schema is a credential, because the provider marked it as sensitive.
ChangeClass ChangeCollector::class_of(const Change& change, const Path& path) const {
  const bool secret = is_of_secret(change.old_value) || is_of_secret(change.new_value);
  return secret && !schema().rule(path).cls ? ChangeClass::credential : schema().cls(path);
}

/// Returns true if the schema interprets `path` differently from the revision under which the baseline was judged.
bool ChangeCollector::schema_changed(const std::string& text) const {
  if (!former_ || text == kIdentityPath) return false;
  const Path path = attribute_path(text);
  const bool reclassed = former_->cls(path) != schema().cls(path);
  // an upgraded baseline is in the new schema's form, and an attribute with a new name had no class before
  if (change_set_.upgraded) return reclassed && former_->find_rule(path) != nullptr;
  return reclassed || !same_interpretation(former_->rule(path), schema().rule(path));
}

/// Returns true if an ignore rule covers the change, or everything that differs inside it.
bool ChangeCollector::ignored(Change& change) {
  if (change.path == kIdentityPath) return false;
  const Path path = attribute_path(change.path);
  const bool out = find_ignore(*context_.rules, stored_.id, path, change.cls) || !prune(context_, stored_.id, change);
  if (out) ++out_.suppressed["ignore-rule"];
  return out;
}

/// Returns how the provider's own diff demoted the change; nullptr if it did not, or must not (a credential).
const Present::DemotedChange* ChangeCollector::demoted(const Change& change, Against against) {
  if (!seen_ || change.cls == ChangeClass::credential) return nullptr;
  for (const auto& demotion : seen_->demoted) {
    if (demotion.path != change.path) continue;
    if (!demotion.unsettled && against == Against::expectation) continue;  // it compared with the baseline's value
    ++out_.suppressed[demotion.unsettled ? "unsettled" : "equivalent"];
    if (demotion.unsettled) {
      out_.unknown.push_back({change.path, "unsettled: " + demotion.reason});
      out_.next.digest = {};  // the same record must be judged again once it has settled
    }
    return &demotion;
  }
  return nullptr;
}

/// Adds the change to its group, unless it is ignored or demoted. `reason` says who declared the value. Returns false
/// if the change is demoted. If it is unsettled, it neither opens nor ends a drift. If it is equivalent, the baseline's
/// value is back in another form, so that an open drift ends as reverted.
bool ChangeCollector::add_to_group(Change change, Against against, Operation operation, std::string reason) {
  const Path path = attribute_path(change.path);
  if (ignored(change)) return true;
  const Present::DemotedChange* demotion = change.path == kIdentityPath ? nullptr : demoted(change, against);
  if (demotion != nullptr) return false;
  const PolicyChoice chosen = choose_policy(*context_.rules, stored_.id, path, change.cls, context_.applied_state);
  Action action = chosen.action;
  const std::string also = reason.empty() ? "" : "; " + reason;
  const std::string never = action == Action::enforce ? never_put_back(change, operation, schema()) : "";
  if (!never.empty()) {
    action = Action::manual;
    reason = "policy enforce (" + chosen.where + ") cannot put it back: " + never + also;
  } else if (action == Action::automatic && against == Against::expectation) {
    action = Action::manual;
    reason = "policy auto (" + chosen.where + ") cannot accept what an expectation forbids" + also;
  }
  DriftGroup& group = change_set_.groups[{change.cls, against, action}];
  group.operation = operation;
  if (!reason.empty()) group.reason = reason;
  group.approvals = std::max(group.approvals, chosen.approvals);
  group.changes.push_back(std::move(change));
  return true;
}

/// A resource that was created or deleted is one drift of its kind's class, whatever the classes of its attributes.
/// Returns false if the kind is of class health, which is not judged.
bool ChangeCollector::add_lifecycle_change(Operation operation, std::vector<Change> changes, const std::string& name) {
  const ChangeClass cls = kind_class();
  if (cls == ChangeClass::health) return false;
  Change identity{std::string(kIdentityPath), cls, {}, {}, false};
  (operation == Operation::created ? identity.new_value : identity.old_value) =
      text_of(name.empty() ? stored_.id.id : name);
  add_to_group(std::move(identity), Against::baseline, operation);
  std::vector<Change>& group = change_set_.groups.begin()->second.changes;  // the only group so far
  for (auto& change : changes) {
    change.cls = class_of(change, attribute_path(change.path));
    if (!ignored(change)) group.push_back(std::move(change));
  }
  return true;
}

void ChangeCollector::created(const Value& body) {
  DiffOptions options;
  options.old_revision = schema().revision();
  options.unread = seen_->observation.unread;
  Difference found = diff(Value(Value::Object{}), body, schema(), options);
  out_.unknown.insert(out_.unknown.end(), found.unknown.begin(), found.unknown.end());
  if (add_lifecycle_change(Operation::created, std::move(found.changes), {})) return;
  out_.next.baseline = render(body);
  out_.next.external_name = seen_->observation.external_name;
}

void ChangeCollector::deleted(const Value& baseline) {
  std::vector<Change> changes;
  for (const auto& [name, value] : *baseline.object()) {
    const Path path = Path{}.child(name);
    const AttributeRule& rule = schema().rule(path);
    if (rule.is_volatile || rule.computed) continue;
    changes.push_back({path.render(), ChangeClass::config, render(value), {}, as_digest(value).has_value()});
  }
  if (add_lifecycle_change(Operation::deleted, std::move(changes), stored_.external_name)) return;
  out_.next.baseline.reset();
  out_.next.external_name.clear();
}

/// Puts the new value into the baseline silently. A drift on the path ends as superseded.
void ChangeCollector::rebaseline(Value& baseline, const Change& change, const char* why) {
  const Result<Value> value = change.new_value ? parse(*change.new_value) : Result<Value>(Value{});
  if (value) (void)assign(baseline, attribute_path(change.path), change.new_value ? &*value : nullptr);
  ++out_.suppressed[why];
}

/// Updates the paths that could never be read: those that can be read now leave the list, so that an attribute is
/// filled in only once. Attributes that a newer schema added and that cannot be read yet join it.
void ChangeCollector::keep_was_unread(const Value& baseline) {
  std::vector<std::string> kept;
  for (const auto& unread : seen_->observation.unread) {
    const Path path = attribute_path(without_double_star(unread.path));
    const bool brought = schema().rule(path).since > stored_.schema_revision && !find(baseline, path);
    if (brought || related_to_any(unread.path, stored_.was_unread)) kept.push_back(unread.path);
  }
  out_.next.was_unread = std::move(kept);
}

/// Returns paths of open drifts that the new schema interprets differently. Those drifts end as superseded, even if the
/// values are equal under the new schema.
std::vector<std::string> ChangeCollector::superseded_by_schema() {
  std::vector<std::string> out;
  for (const auto& drift : stored_.open) {
    for (const auto& change : drift.changes) {
      if (schema_changed(change.path)) out.push_back(change.path);
    }
  }
  return out;
}

/// Returns `recreated` if the identity differs from the baseline's, or if it is not reported now and the resource has
/// an open recreated drift.
Operation ChangeCollector::detect_operation() const {
  const std::string& now = seen_->observation.external_name;
  const auto recreated = [](const Drift& drift) { return drift.operation == Operation::recreated; };
  const bool another =
      now.empty() ? std::any_of(stored_.open.begin(), stored_.open.end(), recreated) : now != stored_.external_name;
  return another && !stored_.external_name.empty() ? Operation::recreated : Operation::changed;
}

void ChangeCollector::compare(Value baseline, const Value& body) {
  const Observation& seen = seen_->observation;
  const auto reread = adopt_reread(context_, stored_, seen, body, baseline);
  change_set_.replaced.insert(change_set_.replaced.end(), reread.begin(), reread.end());
  if (!reread.empty()) out_.suppressed["reread"] += reread.size();
  bool moved = !reread.empty();  // the baseline
  const DiffOptions options{stored_.schema_revision, seen.unread, stored_.was_unread, false, nullptr, stored_.id,
                            context_.keys.get()};
  Difference found = diff(baseline, body, schema(), options);
  out_.unknown.insert(out_.unknown.end(), found.unknown.begin(), found.unknown.end());
  const auto superseded = superseded_by_schema();
  change_set_.replaced.insert(change_set_.replaced.end(), superseded.begin(), superseded.end());
  const Operation operation = detect_operation();
  const bool identity_missing = !stored_.external_name.empty() && seen.external_name.empty();
  const bool recreated = operation == Operation::recreated && !identity_missing;
  if (identity_missing) {  // unknown, which matters only for an open recreated drift
    if (operation == Operation::recreated)
      out_.unknown.push_back({std::string(kIdentityPath), "the system did not report its identity"});
  } else if (recreated && kind_class() != ChangeClass::health) {
    change_set_.replaced.emplace_back(kIdentityPath);
    add_to_group(
        {std::string(kIdentityPath), kind_class(), text_of(stored_.external_name), text_of(seen.external_name), false},
        Against::baseline, operation);
  } else if (recreated || stored_.external_name.empty()) {
    if (!seen.external_name.empty()) change_set_.replaced.emplace_back(kIdentityPath);
    out_.next.external_name = seen.external_name;
  }
  for (const auto& [path, value, same] : found.filled) {
    if (!same) change_set_.replaced.push_back(path);
    (void)assign(baseline, attribute_path(path), &value);
    moved = true;
  }
  for (auto& change : found.changes) {
    change.cls = class_of(change, attribute_path(change.path));
    const std::string path = change.path;
    bool judged = true;
    if (change.redacted && change.old_value) {  // the baseline, too, keeps only what may be shown
      const Result<Value> former = parse(*change.old_value);
      if (former) (void)assign(baseline, attribute_path(path), &*former);
      moved = true;
    }
    const bool retyped = schema_changed(change.path);
    if (retyped || change.cls == ChangeClass::health) {
      rebaseline(baseline, change, retyped ? "schema-revision" : "health");
      moved = true;
    } else {
      judged = add_to_group(std::move(change), Against::baseline, operation);
    }
    if (judged) change_set_.replaced.push_back(path);
  }
  keep_was_unread(baseline);
  if (moved) out_.next.baseline = render(baseline);
}

/// Returns what is expected of the resource. The first expectation that names a path wins; the config's come before the
/// sources'.
ExpectedAttributes ChangeCollector::expected_attributes(const Value& body) {
  ExpectedAttributes out;
  std::set<std::string> done;
  const auto add_expected = [&](const Path& path, const Value& value) {
    if (!done.insert(path.render()).second) return false;
    change_set_.declared.push_back(path.render());
    out.emplace_back(path, value);
    return true;
  };
  for (const auto& expectation : context_.rules->expect) {
    if (!expectation.match.resource(stored_.id)) continue;
    for (const auto& [at, whole] : expectation.attributes) {
      for (const auto& [path, value] : expand_expected(at, whole, body, schema())) add_expected(path, value);
    }
  }
  for (const auto& declaration : context_.declared) {
    change_set_.declared.emplace_back(kIdentityPath);
    const Result<Value> declared = parse(declaration.body);
    if (!declared) out_.unknown.push_back({"", describe(declaration) + ", not valid: " + declared.error().message});
    if (!declared) continue;
    for (const auto& [path, value] : expand_declared(*declared, body, schema())) {
      if (add_expected(path, value)) declared_by_[path.render()] = describe(declaration);
    }
  }
  return out;
}

/// Returns who declared the expected value. Empty if it is an expectation of the config.
std::string ChangeCollector::declared_reason(const std::string& path) const {
  for (const auto& [declared, words] : declared_by_) {
    if (related(declared, path)) return words;
  }
  return {};
}

void ChangeCollector::expectations(const Value& body) {
  const ExpectedAttributes expected = expected_attributes(body);
  if (change_set_.declared.empty()) return;
  DiffOptions options;
  options.unread = seen_->observation.unread;
  options.id = stored_.id;
  options.keys = context_.keys.get();
  options.known = context_.known;
  Difference found = diff_expected(expected, body, schema(), std::move(options));
  std::move(found.unknown.begin(), found.unknown.end(), std::back_inserter(out_.unknown));
  for (auto& change : found.changes) {
    change.cls = class_of(change, attribute_path(change.path));
    std::string reason = declared_reason(change.path);
    if (change.cls != ChangeClass::health)
      add_to_group(std::move(change), Against::expectation, Operation::changed, std::move(reason));
  }
}

/// Adds a drift for a resource that a source declares but that does not exist.
void ChangeCollector::declared_but_absent() {
  if (context_.declared.empty() || kind_class() == ChangeClass::health) return;
  change_set_.declared.emplace_back(kIdentityPath);
  Change missing{std::string(kIdentityPath), kind_class(), text_of(stored_.id.id), {}, false};
  add_to_group(std::move(missing), Against::expectation, Operation::deleted, describe(context_.declared.front()));
}

/// Unknown neither opens nor ends a drift: changes of open drifts on paths that cannot be read now are kept as last
/// read.
void ChangeCollector::keep_unreadable() {
  add_unread(context_, stored_.id, seen_->observation, out_.unknown);
  std::vector<std::string> unknown;
  for (const auto& each : out_.unknown) unknown.push_back(each.path);
  for (const auto& each : seen_->observation.unread) unknown.push_back(each.path);
  const bool identity_missing = std::find(unknown.begin(), unknown.end(), kIdentityPath) != unknown.end();
  for (const auto& drift : stored_.open) {
    if (drift.operation == Operation::deleted) continue;  // the resource exists again, which ends the drift
    if (change_set_.rebased && drift.against == Against::baseline) continue;
    for (const auto& change : drift.changes) {
      const bool expected = drift.against == Against::baseline || related_to_any(change.path, change_set_.declared);
      if (!expected) continue;  // the expectation was removed
      const bool identity = change.path == kIdentityPath;
      const bool unread =
          identity ? identity_missing && drift.operation == Operation::recreated : related_to_any(change.path, unknown);
      if (!unread || related_to_any(change.path, change_set_.replaced)) continue;
      if (!identity && find_ignore(*context_.rules, stored_.id, attribute_path(change.path), change.cls)) {
        change_set_.replaced.push_back(change.path);
        continue;
      }
      DriftGroup& group = change_set_.groups[key_of(drift)];
      if (group.changes.empty()) group.operation = drift.operation;
      if (group.reason.empty() && drift.status == DriftStatus::pending) group.reason = drift.reason;
      group.changes.push_back(change);
      group.stale = true;
    }
  }
}

}  // namespace

void collect_present(const JudgeContext& context, const StoredResource& stored, const Present& seen, const Value& body,
                     const Value& baseline, Judgement& out, ChangeSet& change_set) {
  ChangeCollector collector(context, stored, &seen, out, change_set);
  change_set.new_form =
      stored.schema_revision < context.schema->revision() && is_same_write(*context.schema, stored, seen.observation);
  if (stored.baseline) {
    collector.compare(baseline, body);
  } else {
    collector.created(body);
  }
  collector.expectations(body);
  collector.keep_unreadable();
}

void collect_expected(const JudgeContext& context, const StoredResource& stored, const Present& seen, const Value& body,
                      Judgement& out, ChangeSet& change_set) {
  ChangeCollector collector(context, stored, &seen, out, change_set);
  collector.expectations(body);
  collector.keep_unreadable();
}

void collect_deleted(const JudgeContext& context, const StoredResource& stored, const Value& baseline, Judgement& out,
                     ChangeSet& change_set) {
  ChangeCollector(context, stored, nullptr, out, change_set).deleted(baseline);
}

void collect_missing_declared(const JudgeContext& context, const StoredResource& stored, Judgement& out,
                              ChangeSet& change_set) {
  ChangeCollector(context, stored, nullptr, out, change_set).declared_but_absent();
}

}  // namespace driftd::core
