// SPDX-License-Identifier: Apache-2.0
#include "core/value/schema.hpp"

#include <algorithm>
#include <cassert>

#include "core/value/parse_limits.hpp"
#include "core/value/schema_parts.hpp"

namespace driftd::core {
namespace {

// Limits of a schema. It comes from the plugin, and each of its rules is tried on each attribute of each record.
constexpr std::size_t kMaxSchemaBytes = 1u << 20;
constexpr std::size_t kMaxSchemaNodes = 50'000;
constexpr std::size_t kMaxRules = 2'000;  ///< paths of `attributes`

}  // namespace

/// Parses one driftd-schema/1 document. `where` names a place for errors: `schema of role, attributes."verifier".type`.
class SchemaParser {
 public:
  Result<std::shared_ptr<const KindSchema>> run(const Value& root) {
    if (root.object() == nullptr) return fail(Code::invalid, "schema: expected an object");
    const Value* dialect = root.find("schema");
    if (dialect == nullptr || *dialect != Value("driftd-schema/1")) {
      return fail(Code::invalid, "schema: expected \"schema\": \"driftd-schema/1\"");
    }
    const Value* kind = root.find("kind");
    if (kind == nullptr || kind->string() == nullptr || kind->string()->empty())
      return fail(Code::invalid, "schema: expected a \"kind\"");
    out_->kind_ = *kind->string();
    if (const Value* number = root.find("dialect")) DRIFTD_CHECK(read_dialect(*number));
    for (const auto& [name, value] : *root.object()) DRIFTD_CHECK(document_member(name, value));
    if (root.find("attributes") == nullptr) return fail(Code::invalid, place("attributes") + ": is missing");
    sort_rules();
    if (out_->dialect() > 1) DRIFTD_CHECK(out_->check());
    return std::shared_ptr<const KindSchema>(std::move(out_));
  }

 private:
  std::string place(std::string_view member) const { return "schema of " + out_->kind_ + ", " + std::string(member); }

  Status document_member(const std::string& name, const Value& value) {
    if (name == "schema" || name == "kind" || name == "dialect") return {};
    if (name == "title") return text_of(value, place(name)).map([](auto&&) {});
    if (name == "attributes") return attributes(value);
    if (name == "revision") return store(out_->revision_, positive_of(value, place(name)));
    if (name == "source") return store(out_->source_, flag_of(value, place(name)));
    if (name == "versioned") return store(out_->versioned_, flag_of(value, place(name)));
    if (name == "complete") return complete(value);
    if (name == "identity") return store(out_->identity_, text_of(value, place(name)));
    if (name == "class") return store_class(out_->cls_, value, place(name));
    return fail(Code::invalid, place(name) +
                                   ": unknown member; known are schema, kind, dialect, revision, class, title, "
                                   "identity, source, versioned, complete, attributes");
  }

  Status complete(const Value& value) {
    if (out_->dialect() < 2)
      return fail(Code::invalid, place("complete") + ": belongs to dialect 2; add \"dialect\": 2 to the document");
    return store(out_->complete_, flag_of(value, place("complete")));
  }

  Status read_dialect(const Value& value) {
    DRIFTD_TRY(const std::uint32_t dialect, positive_of(value, place("dialect")));
    if (dialect > kNewestDialect)
      return fail(Code::invalid, place("dialect") + ": this agent knows 1 to " + std::to_string(kNewestDialect) +
                                     ", found " + std::to_string(dialect) + "; a newer agent is needed");
    out_->default_.dialect = static_cast<int>(dialect);
    return {};
  }

  Status attributes(const Value& value) {
    if (value.object() == nullptr) return fail(Code::invalid, place("attributes") + ": expected an object");
    if (value.object()->size() > kMaxRules) {
      return fail(Code::invalid, place("attributes") + ": expected at most " + std::to_string(kMaxRules) +
                                     " paths, found " + std::to_string(value.object()->size()));
    }
    for (const auto& [glob, rule] : *value.object()) {
      const std::string where = place("attributes.\"" + glob + "\"");
      auto path = Glob::parse_path(glob);
      if (!path) return fail(Code::invalid, where + ": " + path.error().message);
      if (rule.object() == nullptr) return fail(Code::invalid, where + ": expected an object");
      AttributeRule made;
      made.path = std::move(*path);
      made.dialect = out_->dialect();
      DRIFTD_CHECK(read_rule(made, *rule.object(), where));
      if (made.collection == Collection::map_by_keys && made.keys.empty())
        return fail(Code::invalid, where + ": a map needs \"keys\"");
      DRIFTD_CHECK(check_default(made, where));
      rules_.emplace_back(std::move(made), rule);
    }
    return {};
  }

  void sort_rules() {
    std::stable_sort(rules_.begin(), rules_.end(), [](const auto& a, const auto& b) {
      return a.first.path.specificity() > b.first.path.specificity();
    });
    for (auto& [rule, members] : rules_) {
      const bool alone = !rule.default_by && !rule.rule_by && rule.default_of.empty() && rule.netmask_of.empty() &&
                         rule.may_hold.empty() && rule.into.empty();
      const bool plain = alone && rule.masked.empty() && rule.hidden.empty();
      out_->has_into_ = out_->has_into_ || !rule.into.empty();
      out_->same_values_are_equal_ = out_->same_values_are_equal_ && plain;
      out_->rules_.push_back(std::move(rule));
      if (out_->dialect() > 1) out_->members_.push_back(std::move(members));
    }
  }

  std::vector<std::pair<AttributeRule, Value>> rules_;  ///< with what the document says of each
  std::shared_ptr<KindSchema> out_ = std::make_shared<KindSchema>();
};

Result<std::shared_ptr<const KindSchema>> KindSchema::parse(std::string_view json) {
  const auto root = core::parse(json, ParseLimits{.bytes = kMaxSchemaBytes, .nodes = kMaxSchemaNodes});
  if (!root) return fail(Code::invalid, "schema: " + root.error().message);
  return SchemaParser().run(*root);
}

std::shared_ptr<const KindSchema> KindSchema::unknown(std::string kind) {
  auto out = std::make_shared<KindSchema>();
  out->kind_ = std::move(kind);
  return out;
}

const AttributeRule* KindSchema::find_rule(const Path& path) const {
  if (dialect() == 1) {
    const auto it =
        std::find_if(rules_.begin(), rules_.end(), [&](const AttributeRule& rule) { return rule.path.matches(path); });
    return it == rules_.end() ? nullptr : &*it;
  }
  Patterns matching;
  for (std::size_t i = 0; i < rules_.size(); ++i) {
    if (rules_[i].path.matches(path)) matching.push_back(i);
  }
  return merged(matching);
}

bool KindSchema::names(const Path& path) const {
  if (!complete_ || path.empty()) return true;
  const auto& segments = path.segments();
  const auto is_member = [](const Path::Segment& one) { return std::holds_alternative<std::string>(one); };
  if (!is_member(segments.back())) return true;
  const auto has_pattern = [this](const Path& at) {
    return std::any_of(rules_.begin(), rules_.end(), [&](const AttributeRule& rule) {
      return !rule.path.text().ends_with("**") && rule.path.matches(at);
    });
  };
  const bool in_body = segments.size() == 1;
  const bool in_element = !in_body && !is_member(segments[segments.size() - 2]) && has_pattern(path.parent().parent());
  if ((!in_body && !in_element) || has_pattern(path)) return true;
  const auto is_of_member = [&](const AttributeRule& rule) { return rule.path.lies_below(path); };
  return std::any_of(rules_.begin(), rules_.end(), is_of_member);  // an object may be named by those of its members
                                                                   // alone
}

const AttributeRule& KindSchema::scalar_rule(const Path& list, const Path& element) const {
  Patterns own, of_list;
  for (std::size_t i = 0; i < rules_.size(); ++i) {
    if (rules_[i].path.matches(list)) {
      of_list.push_back(i);
    } else if (rules_[i].path.matches(element)) {
      own.push_back(i);
    }
  }
  own.insert(own.end(), of_list.begin(), of_list.end());
  const AttributeRule* found = merged(own);
  const std::lock_guard lock(merging_);
  const auto [at, is_new] = scalar_rules_.try_emplace(std::move(own));
  if (is_new) at->second = element_rule(found == nullptr ? default_ : *found);
  return at->second;
}

const AttributeRule* KindSchema::merged(const Patterns& patterns) const {
  if (patterns.empty()) return nullptr;
  if (patterns.size() == 1) return &rules_[patterns.front()];
  const std::lock_guard lock(merging_);
  const auto [at, is_new] = merged_.try_emplace(patterns);
  if (!is_new) return &at->second;
  Value::Object members;
  bool has_default = false;
  for (const auto index : patterns) {
    const bool had_default = has_default;
    for (const auto& [name, value] : *members_[index].object()) {
      const bool is_default = name.starts_with("default");  // default, default_by, default_of: the most specific counts
      if (!is_default || !had_default) members.emplace(name, value);
      has_default = has_default || is_default;
    }
  }
  AttributeRule& made = at->second;
  made.path = rules_[patterns.front()].path;
  made.dialect = dialect();
  // Each member was read before, by itself, so this cannot fail. If it did, a member that marks a secret could be
  // missing, so all values would count as secret.
  const Status read = read_rule(made, members, "");
  assert(read);
  if (!read) made.sensitive = true;
  if (made.collection == Collection::map_by_keys && made.keys.empty()) made.collection = Collection::multiset;
  return &made;
}

std::optional<const AttributeRule*> KindSchema::find_element_rule(const Path& list) const {
  Patterns matching;
  for (std::size_t i = 0; i < rules_.size(); ++i) {
    const auto covered = rules_[i].path.matches_elements(list);
    if (covered == Glob::Elements::some) return std::nullopt;
    if (covered != Glob::Elements::all) continue;
    if (dialect() == 1) return &rules_[i];
    matching.push_back(i);
  }
  return merged(matching);
}

const AttributeRule& KindSchema::rule(const Path& path) const {
  const auto* found = find_rule(path);
  return found == nullptr ? default_ : *found;
}

ChangeClass KindSchema::cls(const Path& path) const {
  for (Path at = path; !at.empty(); at = at.parent()) {
    if (const auto* found = find_rule(at); found != nullptr && found->cls) return *found->cls;
  }
  return cls_;
}

}  // namespace driftd::core
