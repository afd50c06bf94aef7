// SPDX-License-Identifier: Apache-2.0
// From a reading to the groups of changes that stand now.
#include <algorithm>
#include <iterator>
#include <set>

#include "core/judge/stages.hpp"
#include "core/redact.hpp"

namespace driftd::core {
namespace {

/// A digest that the provider or the schema called a secret's; what is only withheld keeps its class.
bool is_of_secret(const std::optional<std::string>& json) {
  if (!json) return false;
  const Result<Value> value = parse(*json);
  const auto digest = value ? as_digest(*value) : std::nullopt;
  return digest && !digest->withheld;
}

std::string text_of(const std::string& value) { return render(Value(value)); }

std::string without_depth(const std::string& pattern) {
  const bool deep = pattern.size() > 3 && pattern.ends_with(".**");
  return deep ? pattern.substr(0, pattern.size() - 3) : pattern;
}

/// Carries one reading through diff, ignore rules, demotions, policies and expectations.
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
  std::string why(const std::string& path) const;

  const JudgeContext& context_;
  const StoredResource& stored_;
  const Present* seen_;
  Judgement& out_;
  ChangeSet& change_set_;
  const KindSchema* former_ = nullptr;
  std::map<std::string, std::string> declared_by_;  ///< path → words, where a source wants it
};

/// A digest that no rule of the schema classes is a credential: the provider called it sensitive.
ChangeClass ChangeCollector::class_of(const Change& change, const Path& path) const {
  const bool secret = is_of_secret(change.old_value) || is_of_secret(change.new_value);
  return secret && !schema().rule(path).cls ? ChangeClass::credential : schema().cls(path);
}

/// The schema now reads `path` otherwise than the revision that the baseline was judged under.
bool ChangeCollector::schema_changed(const std::string& text) const {
  if (!former_ || text == kIdentityPath) return false;
  const Path path = attribute_path(text);
  const bool reclassed = former_->cls(path) != schema().cls(path);
  // an upgraded baseline is written as the new schema reads it; what has a new name had no class before
  if (change_set_.upgraded) return reclassed && former_->find_rule(path) != nullptr;
  return reclassed || !same_interpretation(former_->rule(path), schema().rule(path));
}

/// An ignore rule covers the change, or all that differs inside it.
bool ChangeCollector::ignored(Change& change) {
  if (change.path == kIdentityPath) return false;
  const Path path = attribute_path(change.path);
  const bool out = find_ignore(*context_.rules, stored_.id, path, change.cls) || !prune(context_, stored_.id, change);
  if (out) ++out_.suppressed["ignore-rule"];
  return out;
}

/// What the provider's own diff said of it; nullptr: nothing that holds.
const Present::DemotedChange* ChangeCollector::demoted(const Change& change, Against against) {
  if (!seen_ || change.cls == ChangeClass::credential) return nullptr;
  for (const auto& demotion : seen_->demoted) {
    if (demotion.path != change.path) continue;
    if (!demotion.unsettled && against == Against::expectation) continue;  // it spoke of the baseline's value
    ++out_.suppressed[demotion.unsettled ? "unsettled" : "equivalent"];
    if (demotion.unsettled) {
      out_.unknown.push_back({change.path, "unsettled: " + demotion.reason});
      out_.next.digest = {};  // the same record must be judged again once it has settled
    }
    return &demotion;
  }
  return nullptr;
}

/// `reason`: why it stands, where the change itself does not tell (who declared it). False: it is unsettled and says
/// nothing yet, neither a change nor the end of what was said before.
bool ChangeCollector::add_to_group(Change change, Against against, Operation operation, std::string reason) {
  const Path path = attribute_path(change.path);
  if (ignored(change)) return true;
  const Present::DemotedChange* demotion = change.path == kIdentityPath ? nullptr : demoted(change, against);
  if (demotion != nullptr) return !demotion->unsettled;
  const PolicyChoice chosen = choose_policy(*context_.rules, stored_.id, path, change.cls, context_.applied_state);
  Action action = chosen.action;
  const std::string also = reason.empty() ? "" : "; " + reason;
  if (action == Action::enforce) {
    action = Action::manual;
    reason = "policy enforce (" + chosen.where + "): the provider cannot apply, so a person decides" + also;
  } else if (action == Action::automatic && against == Against::expectation) {
    action = Action::manual;
    reason = "policy auto (" + chosen.where + ") cannot accept what an expectation forbids" + also;
  }
  DriftGroup& group = change_set_.groups[{change.cls, against, action}];
  group.operation = operation;
  if (!reason.empty()) group.reason = reason;
  group.changes.push_back(std::move(change));
  return true;
}

/// A resource that came or went is one drift of its kind's class, whatever the classes of its attributes.
/// False: nothing to judge, the kind is health.
bool ChangeCollector::add_lifecycle_change(Operation operation, std::vector<Change> changes, const std::string& name) {
  const ChangeClass cls = kind_class();
  if (cls == ChangeClass::health) return false;
  Change identity{std::string(kIdentityPath), cls, {}, {}, false};
  (operation == Operation::created ? identity.new_value : identity.old_value) =
      text_of(name.empty() ? stored_.id.id : name);
  add_to_group(std::move(identity), Against::baseline, operation);
  std::vector<Change>& group = change_set_.groups.begin()->second.changes;
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

/// The baseline takes this value without a word; a drift on the path ends as superseded.
void ChangeCollector::rebaseline(Value& baseline, const Change& change, const char* why) {
  const Result<Value> value = change.new_value ? parse(*change.new_value) : Result<Value>(Value{});
  if (value) (void)assign(baseline, attribute_path(change.path), change.new_value ? &*value : nullptr);
  ++out_.suppressed[why];
}

/// Attributes stay "never readable" only while they are: one that the baseline holds is not filled a second time. What
/// a newer schema brings and cannot be read yet joins them.
void ChangeCollector::keep_was_unread(const Value& baseline) {
  std::vector<std::string> kept;
  for (const auto& unread : seen_->observation.unread) {
    const Path path = attribute_path(without_depth(unread.path));
    const bool brought = schema().rule(path).since > stored_.schema_revision && !find(baseline, path);
    if (brought || related_to_any(unread.path, stored_.was_unread)) kept.push_back(unread.path);
  }
  out_.next.was_unread = std::move(kept);
}

/// Paths of open drifts that the new schema reads otherwise: those drifts end as superseded even where the new reading
/// calls the values equal.
std::vector<std::string> ChangeCollector::superseded_by_schema() {
  std::vector<std::string> out;
  for (const auto& drift : stored_.open) {
    for (const auto& change : drift.changes) {
      if (schema_changed(change.path)) out.push_back(change.path);
    }
  }
  return out;
}

/// Recreated, where the identity is another one, or was when it was last said.
Operation ChangeCollector::detect_operation() const {
  const std::string& now = seen_->observation.external_name;
  const auto recreated = [](const Drift& drift) { return drift.operation == Operation::recreated; };
  const bool another =
      now.empty() ? std::any_of(stored_.open.begin(), stored_.open.end(), recreated) : now != stored_.external_name;
  return another && !stored_.external_name.empty() ? Operation::recreated : Operation::changed;
}

void ChangeCollector::compare(Value baseline, const Value& body) {
  const Observation& seen = seen_->observation;
  const DiffOptions options{stored_.schema_revision, seen.unread, stored_.was_unread, false, nullptr, stored_.id,
                            context_.keys.get()};
  Difference found = diff(baseline, body, schema(), options);
  out_.unknown.insert(out_.unknown.end(), found.unknown.begin(), found.unknown.end());
  const auto superseded = superseded_by_schema();
  change_set_.replaced.insert(change_set_.replaced.end(), superseded.begin(), superseded.end());
  const Operation operation = detect_operation();
  const bool identity_missing = !stored_.external_name.empty() && seen.external_name.empty();
  const bool recreated = operation == Operation::recreated && !identity_missing;
  if (identity_missing) {  // nothing to say, but of a recreation that stands
    if (operation == Operation::recreated)
      out_.unknown.push_back({std::string(kIdentityPath), "the system did not say which one it is"});
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
  }
  for (auto& change : found.changes) {
    change.cls = class_of(change, attribute_path(change.path));
    const std::string path = change.path;
    bool judged = true;
    if (change.redacted && change.old_value) {  // the baseline, too, keeps of it what may be shown
      const Result<Value> former = parse(*change.old_value);
      if (former) (void)assign(baseline, attribute_path(path), &*former);
    }
    if (schema_changed(change.path)) {
      rebaseline(baseline, change, "schema-revision");
    } else if (change.cls == ChangeClass::health) {
      rebaseline(baseline, change, "health");
    } else {
      judged = add_to_group(std::move(change), Against::baseline, operation);
    }
    if (judged) change_set_.replaced.push_back(path);
  }
  keep_was_unread(baseline);
  out_.next.baseline = render(baseline);
}

/// What is expected of the resource. The first expectation that names a path wins, the config's before any source's.
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
    for (const auto& [at, add_lifecycle_change] : expectation.where_all) {
      for (const auto& [path, value] : expand_expected(at, add_lifecycle_change, body, schema()))
        add_expected(path, value);
    }
  }
  for (const auto& declaration : context_.declared) {
    change_set_.declared.emplace_back(kIdentityPath);
    const Result<Value> declared = parse(declaration.body);
    if (!declared) out_.unknown.push_back({"", describe(declaration) + ", unreadably: " + declared.error().message});
    if (!declared) continue;
    for (const auto& [path, value] : expand_declared(*declared, body, schema())) {
      if (add_expected(path, value)) declared_by_[path.render()] = describe(declaration);
    }
  }
  return out;
}

/// Who declared what a change deviates from; empty: an expectation of the config.
std::string ChangeCollector::why(const std::string& path) const {
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
  Difference found = diff_expected(expected, body, schema(), std::move(options));
  std::move(found.unknown.begin(), found.unknown.end(), std::back_inserter(out_.unknown));
  for (auto& change : found.changes) {
    change.cls = class_of(change, attribute_path(change.path));
    std::string reason = why(change.path);
    if (change.cls != ChangeClass::health)
      add_to_group(std::move(change), Against::expectation, Operation::changed, std::move(reason));
  }
}

/// A source declares what is not there.
void ChangeCollector::declared_but_absent() {
  if (context_.declared.empty() || kind_class() == ChangeClass::health) return;
  change_set_.declared.emplace_back(kIdentityPath);
  Change missing{std::string(kIdentityPath), kind_class(), text_of(stored_.id.id), {}, false};
  add_to_group(std::move(missing), Against::expectation, Operation::deleted, describe(context_.declared.front()));
}

/// Unknown is neither drift nor its end: what an open drift said of a path that cannot be read now stands as last seen.
void ChangeCollector::keep_unreadable() {
  std::vector<std::string> unknown;
  for (const auto& each : out_.unknown) unknown.push_back(without_depth(each.path));
  const bool identity_missing = std::find(unknown.begin(), unknown.end(), kIdentityPath) != unknown.end();
  for (const auto& drift : stored_.open) {
    if (drift.operation == Operation::deleted) continue;  // it is back: that much is known
    if (change_set_.rebased && drift.against == Against::baseline) continue;
    for (const auto& change : drift.changes) {
      const bool expected = drift.against == Against::baseline || related_to_any(change.path, change_set_.declared);
      if (!expected) continue;  // the expectation was taken back
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

Path attribute_path(const std::string& text) {
  if (text == kIdentityPath) return {};
  Result<Path> path = Path::parse(text);
  return path ? std::move(*path) : Path{}.child(text);
}

void collect_present(const JudgeContext& context, const StoredResource& stored, const Present& seen, const Value& body,
                     const Value& baseline, Judgement& out, ChangeSet& change_set) {
  ChangeCollector collector(context, stored, &seen, out, change_set);
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
