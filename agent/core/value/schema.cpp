// SPDX-License-Identifier: Apache-2.0
#include "core/value/schema.hpp"

#include <algorithm>
#include <array>
#include <charconv>

#include "core/value/parse_limits.hpp"

namespace driftd::core {
namespace {

// Limits of a schema. It comes from the plugin, and each of its rules is tried on each attribute of each record.
constexpr std::size_t kMaxSchemaBytes = 1u << 20;
constexpr std::size_t kMaxSchemaNodes = 50'000;
constexpr std::size_t kMaxRules = 2'000;  ///< paths of `attributes`
constexpr std::size_t kMaxUnitBytes = 64;

template <class E, std::size_t N>
using Names = std::array<std::pair<std::string_view, E>, N>;

constexpr Names<ValueType, 21> kTypes = {{{"any", ValueType::any},
                                          {"string", ValueType::string},
                                          {"int", ValueType::integer},
                                          {"decimal", ValueType::decimal},
                                          {"bool", ValueType::boolean},
                                          {"bytes", ValueType::bytes},
                                          {"duration", ValueType::duration},
                                          {"percent", ValueType::percent},
                                          {"json", ValueType::json},
                                          {"yaml", ValueType::yaml},
                                          {"properties", ValueType::properties},
                                          {"pem", ValueType::pem},
                                          {"ssh_key", ValueType::ssh_key},
                                          {"url", ValueType::url},
                                          {"endpoint", ValueType::endpoint},
                                          {"host", ValueType::host},
                                          {"inet", ValueType::inet},
                                          {"cidr", ValueType::cidr},
                                          {"version", ValueType::version},
                                          {"timestamp", ValueType::timestamp},
                                          {"enum", ValueType::enumeration}}};
constexpr Names<Collection, 5> kCollections = {{{"list", Collection::list},
                                                {"set", Collection::set},
                                                {"multiset", Collection::multiset},
                                                {"map", Collection::map_by_keys},
                                                {"scalar_or_list", Collection::scalar_or_list}}};

/// Returns the enum of a name, or an error with all names.
template <class E, std::size_t N>
Result<E> parse_name(const Names<E, N>& names, const Value& value, const std::string& where) {
  const auto* text = value.string();
  std::string known;
  for (const auto& [name, e] : names) {
    if (text != nullptr && *text == name) return e;
    known += (known.empty() ? "" : ", ") + std::string(name);
  }
  return fail(Code::invalid, where + ": expected one of " + known + ", found " + render(value));
}

template <class E, std::size_t N>
std::string_view name_of(const Names<E, N>& names, E value) {
  const auto it = std::find_if(names.begin(), names.end(), [&](const auto& pair) { return pair.second == value; });
  return it == names.end() ? "?" : it->first;
}

Result<bool> flag(const Value& value, const std::string& where) {
  if (const auto* truth = value.boolean()) return *truth;
  return fail(Code::invalid, where + ": expected true or false, found " + render(value));
}
Result<std::string> text(const Value& value, const std::string& where) {
  if (const auto* found = value.string()) return *found;
  return fail(Code::invalid, where + ": expected a string, found " + render(value));
}
Result<std::uint32_t> positive(const Value& value, const std::string& where) {
  std::uint32_t out = 0;
  const auto* number = value.number();
  const auto* token = number != nullptr ? &number->token : nullptr;
  const auto end = token != nullptr ? token->data() + token->size() : nullptr;
  if (token != nullptr) {
    const auto [at, error] = std::from_chars(token->data(), end, out);
    if (error == std::errc() && at == end && out > 0) return out;
  }
  return fail(Code::invalid, where + ": expected a whole number from 1, found " + render(value));
}
Result<Value::Array> list(const Value& value, const std::string& where) {
  if (const auto* found = value.array()) return *found;
  return fail(Code::invalid, where + ": expected a list, found " + render(value));
}
Result<std::vector<std::string>> texts(const Value& value, const std::string& where) {
  DRIFTD_TRY(const Value::Array found, list(value, where));
  std::vector<std::string> out;
  for (const auto& element : found) {
    DRIFTD_TRY(std::string one, text(element, where));
    out.push_back(std::move(one));
  }
  return out;
}

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
    for (const auto& [name, value] : *root.object()) DRIFTD_CHECK(document_member(name, value));
    if (root.find("attributes") == nullptr) return fail(Code::invalid, place("attributes") + ": is missing");
    finish();
    return std::shared_ptr<const KindSchema>(std::move(out_));
  }

 private:
  std::string place(std::string_view member) const { return "schema of " + out_->kind_ + ", " + std::string(member); }

  Status document_member(const std::string& name, const Value& value) {
    if (name == "schema" || name == "kind") return {};
    if (name == "title") return text(value, place(name)).map([](auto&&) {});
    if (name == "attributes") return attributes(value);
    if (name == "revision") return store(out_->revision_, positive(value, place(name)));
    if (name == "source") return store(out_->source_, flag(value, place(name)));
    if (name == "identity") return store(out_->identity_, text(value, place(name)));
    if (name == "class") return class_member(value, place(name), out_->cls_);
    return fail(
        Code::invalid,
        place(name) + ": unknown member; known are schema, kind, revision, class, title, identity, source, attributes");
  }

  /// Puts the value into `slot`, or returns the error.
  template <class T>
  static Status store(T& slot, Result<T> result) {
    if (!result) return fail(result.error());
    slot = std::move(*result);
    return {};
  }
  static Status class_member(const Value& value, const std::string& where, ChangeClass& slot) {
    DRIFTD_TRY(const std::string word, text(value, where));
    const auto parsed = parse_class(word);
    if (!parsed) return fail(Code::invalid, where + ": " + parsed.error().message);
    slot = *parsed;
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
      for (const auto& [name, member] : *rule.object())
        DRIFTD_CHECK(rule_member(made, name, member, where + "." + name));
      if (made.collection == Collection::map_by_keys && made.keys.empty())
        return fail(Code::invalid, where + ": a map needs \"keys\"");
      out_->rules_.push_back(std::move(made));
    }
    return {};
  }

  Status rule_member(AttributeRule& rule, const std::string& name, const Value& value, const std::string& where) {
    if (name == "type") return store(rule.type, parse_name(kTypes, value, where));
    if (name == "collection") return store(rule.collection, parse_name(kCollections, value, where));
    if (name == "unit") return unit(rule, value, where);
    if (name == "basis") return store(rule.basis, text(value, where));
    if (name == "keys") return store(rule.keys, texts(value, where));
    if (name == "class") return class_member(value, where, rule.cls.emplace());
    if (name == "empty") return store(rule.empty_equivalents, list(value, where));
    if (name == "masked") return store(rule.masked, list(value, where));
    if (name == "tokens") return tokens(rule, value, where);
    if (name == "trim") return trim(rule, value, where);
    if (name == "since") return store(rule.since, positive(value, where));
    if (name == "default") return read_default(rule, value, where);
    if (name == "fold") {
      DRIFTD_TRY(const std::string word, text(value, where));
      if (word != "ascii") return fail(Code::invalid, where + ": expected \"ascii\", found " + render(value));
      rule.fold = true;
      return {};
    }
    return flags(rule, name, value, where);
  }

  /// No member of a default may have a default of its own: a rule such as `**` would be its own member without an end.
  static Status read_default(AttributeRule& rule, const Value& value, const std::string& where) {
    if (holds_members(value))
      return fail(Code::invalid, where +
                                     ": expected a scalar, {} or a list without objects, found an object with members; "
                                     "give each member a default of its own, as in \"a.b\": {\"default\": 1}");
    rule.default_value = value;
    return {};
  }

  static bool holds_members(const Value& value) {
    if (const auto* object = value.object()) return !object->empty();
    const auto* array = value.array();
    return array != nullptr && std::any_of(array->begin(), array->end(), holds_members);
  }

  static Status unit(AttributeRule& rule, const Value& value, const std::string& where) {
    DRIFTD_TRY(rule.unit, text(value, where));
    if (rule.unit.size() > kMaxUnitBytes)
      return fail(Code::invalid, where + ": a unit has at most " + std::to_string(kMaxUnitBytes) + " bytes");
    return {};
  }

  static Status flags(AttributeRule& rule, const std::string& name, const Value& value, const std::string& where) {
    if (name == "volatile") return store(rule.is_volatile, flag(value, where));
    if (name == "computed") return store(rule.computed, flag(value, where));
    if (name == "sensitive") return store(rule.sensitive, flag(value, where));
    if (name == "write_only") return store(rule.write_only, flag(value, where));
    return fail(Code::invalid,
                where +
                    ": unknown member; known are type, unit, collection, keys, basis, class, default, empty, tokens, "
                    "masked, fold, trim, volatile, computed, sensitive, write_only, since");
  }

  static Status tokens(AttributeRule& rule, const Value& value, const std::string& where) {
    if (value.object() == nullptr) return fail(Code::invalid, where + ": expected {\"true\": […], \"false\": […]}");
    for (const auto& [name, words] : *value.object()) {
      if (name != "true" && name != "false")
        return fail(Code::invalid, where + "." + name + ": expected true or false");
      DRIFTD_CHECK(store(name == "true" ? rule.true_tokens : rule.false_tokens, texts(words, where + "." + name)));
    }
    return {};
  }

  static Status trim(AttributeRule& rule, const Value& value, const std::string& where) {
    if (value == Value("space")) {
      rule.trim_space = true;
    } else if (value == Value("eol")) {
      rule.trim_eol = true;
    } else {
      return fail(Code::invalid, where + ": expected \"space\" or \"eol\", found " + render(value));
    }
    return {};
  }

  void finish() {
    std::stable_sort(out_->rules_.begin(), out_->rules_.end(), [](const AttributeRule& a, const AttributeRule& b) {
      return a.path.specificity() > b.path.specificity();
    });
  }

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
  const auto it =
      std::find_if(rules_.begin(), rules_.end(), [&](const AttributeRule& rule) { return rule.path.matches(path); });
  return it == rules_.end() ? nullptr : &*it;
}

std::optional<const AttributeRule*> KindSchema::find_element_rule(const Path& list) const {
  for (const auto& rule : rules_) {
    const auto covered = rule.path.matches_elements(list);
    if (covered == Glob::Elements::some) return std::nullopt;
    if (covered == Glob::Elements::all) return &rule;
  }
  return nullptr;
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

std::string render(const AttributeRule& rule) {
  std::string out(name_of(kTypes, rule.type));
  if (!rule.unit.empty()) out += "(" + rule.unit + ")";
  if (rule.collection != Collection::none) out += " " + std::string(name_of(kCollections, rule.collection));
  if (rule.fold) out += " folded";
  if (rule.trim_space || rule.trim_eol) out += " trimmed";
  return out + (rule.path.text().empty() ? " by default" : " of \"" + rule.path.text() + "\"");
}

}  // namespace driftd::core
