// SPDX-License-Identifier: Apache-2.0
// Reads one rule of a schema: the object behind a pattern.
#include <algorithm>
#include <array>
#include <charconv>
#include <functional>
#include <set>

#include "core/value/rule_names.hpp"
#include "core/value/schema_parts.hpp"
#include "core/value/types.hpp"

namespace driftd::core {
namespace {

constexpr std::size_t kMaxUnitBytes = 64;
constexpr std::size_t kMaxDefaultBytes = 4'096;  ///< of one with members: it is rendered for each attribute

tl::unexpected<Error> unexpected(const std::string& where, std::string_view expected, const Value& found) {
  return fail(Code::invalid, where + ": expected " + std::string(expected) + ", found " + render(found));
}

Result<Value::Array> list(const Value& value, const std::string& where) {
  if (const auto* found = value.array()) return *found;
  return unexpected(where, "a list", value);
}
Result<std::vector<std::string>> texts(const Value& value, const std::string& where) {
  DRIFTD_TRY(const Value::Array found, list(value, where));
  std::vector<std::string> out;
  for (const auto& element : found) {
    DRIFTD_TRY(std::string one, text_of(element, where));
    out.push_back(std::move(one));
  }
  return out;
}

bool holds_members(const Value& value) {
  if (const auto* object = value.object()) return !object->empty();
  const auto* array = value.array();
  return array != nullptr && std::any_of(array->begin(), array->end(), holds_members);
}

/// Reads the members of one rule. `where` is the place of the member that is read.
class RuleReader {
 public:
  RuleReader(AttributeRule& rule, std::string where) : rule_(rule), where_(std::move(where)) {}

  Status read(const std::string& name, const Value& value) {
    const auto& known = members();
    const auto found = known.find(name);
    if (found == known.end()) return unknown_member();
    if (found->second.dialect > rule_.dialect) return needs_dialect();
    return found->second.read(*this, value);
  }

 private:
  struct Member {
    int dialect;
    std::function<Status(RuleReader&, const Value&)> read;
  };

  static const std::map<std::string, Member, std::less<>>& members() {
    using R = RuleReader;
    static const std::map<std::string, Member, std::less<>> kMembers = {
        {"type", {1, &R::type}},
        {"collection", {1, [](R& r, const Value& v) { return r.named(r.rule_.collection, kCollections, v); }}},
        {"unit", {1, &R::unit}},
        {"basis", {1, [](R& r, const Value& v) { return store(r.rule_.basis, text_of(v, r.where_)); }}},
        {"keys", {1, [](R& r, const Value& v) { return store(r.rule_.keys, texts(v, r.where_)); }}},
        {"class", {1, [](R& r, const Value& v) { return store_class(r.rule_.cls.emplace(), v, r.where_); }}},
        {"empty", {1, [](R& r, const Value& v) { return store(r.rule_.empty_equivalents, list(v, r.where_)); }}},
        {"masked", {1, [](R& r, const Value& v) { return store(r.rule_.masked, list(v, r.where_)); }}},
        {"tokens", {1, &R::tokens}},
        {"trim", {1, &R::trim}},
        {"since", {1, [](R& r, const Value& v) { return store(r.rule_.since, positive_of(v, r.where_)); }}},
        {"default", {1, &R::read_default}},
        {"fold", {1, [](R& r, const Value& v) { return r.word(r.rule_.fold, "ascii", v); }}},
        {"volatile", {1, [](R& r, const Value& v) { return store(r.rule_.is_volatile, flag_of(v, r.where_)); }}},
        {"computed", {1, [](R& r, const Value& v) { return store(r.rule_.computed, flag_of(v, r.where_)); }}},
        {"sensitive", {1, [](R& r, const Value& v) { return store(r.rule_.sensitive, flag_of(v, r.where_)); }}},
        {"write_only", {1, [](R& r, const Value& v) { return store(r.rule_.write_only, flag_of(v, r.where_)); }}},
        {"open", {2, &R::open}},
        {"closed", {2, [](R& r, const Value& v) { return store(r.rule_.closed, flag_of(v, r.where_)); }}},
        {"ordered", {2, [](R& r, const Value& v) { return store(r.rule_.ordered, flag_of(v, r.where_)); }}},
        {"single", {2, [](R& r, const Value& v) { return store(r.rule_.single, flag_of(v, r.where_)); }}},
        {"inside", {2, [](R& r, const Value& v) { return store(r.rule_.inside, flag_of(v, r.where_)); }}},
        {"hollow", {2, [](R& r, const Value& v) { return store(r.rule_.hollow, flag_of(v, r.where_)); }}},
        {"names", {2, [](R& r, const Value& v) { return r.word(r.rule_.fold_names, "ascii", v); }}},
        {"split", {2, [](R& r, const Value& v) { return store(r.rule_.split.emplace(), text_of(v, r.where_)); }}},
        {"words", {2, &R::words}},
        {"encoding", {2, [](R& r, const Value& v) { return r.named(r.rule_.encoding, kEncodings, v); }}},
        {"accepts", {2, &R::accepts}},
        {"unordered_runs",
         {2, [](R& r, const Value& v) { return store(r.rule_.unordered_runs, flag_of(v, r.where_)); }}},
        {"in_effect", {2, [](R& r, const Value& v) { return store(r.rule_.in_effect, flag_of(v, r.where_)); }}},
        {"flat", {2, [](R& r, const Value& v) { return store(r.rule_.flat, flag_of(v, r.where_)); }}},
        {"digest", {2, [](R& r, const Value& v) { return r.named(r.rule_.digest, kDigestForms, v); }}},
        {"unicode", {2, [](R& r, const Value& v) { return r.named(r.rule_.unicode, kUnicodeForms, v); }}},
        {"hidden", {2, &R::hidden}},
        {"default_by", {2, &R::default_by}},
        {"default_of", {2, [](R& r, const Value& v) { return store(r.rule_.default_of, r.filled_text(v)); }}},
        {"generated_from", {2, [](R& r, const Value& v) { return store(r.rule_.generated_from, r.filled_text(v)); }}},
        {"refers", {2, [](R& r, const Value& v) { return store(r.rule_.refers, texts(v, r.where_)); }}},
        {"into", {2, [](R& r, const Value& v) { return store(r.rule_.into, r.filled_text(v)); }}},
        {"overrides", {2, [](R& r, const Value& v) { return store(r.rule_.overrides, flag_of(v, r.where_)); }}},
        {"netmask_of", {2, [](R& r, const Value& v) { return store(r.rule_.netmask_of, r.filled_text(v)); }}},
        {"may_hold", {2, [](R& r, const Value& v) { return store(r.rule_.may_hold, texts(v, r.where_)); }}},
        {"prefixes", {2, [](R& r, const Value& v) { return store(r.rule_.prefixes, texts(v, r.where_)); }}},
        {"suffixes", {2, [](R& r, const Value& v) { return store(r.rule_.suffixes, texts(v, r.where_)); }}},
        {"covers", {2, [](R& r, const Value& v) { return store(r.rule_.covers, flag_of(v, r.where_)); }}},
        {"at_least", {2, [](R& r, const Value& v) { return store(r.rule_.at_least, flag_of(v, r.where_)); }}},
        {"other_defaults", {2, [](R& r, const Value& v) { return store(r.rule_.other_defaults, list(v, r.where_)); }}},
        {"between", {2, &R::between}},
        {"expands", {2, &R::expands}},
        {"same", {2, &R::same}},
        {"rule_by", {2, &R::rule_by}}};
    return kMembers;
  }

  Status unknown_member() const {
    std::string known;
    for (const auto& [name, member] : members()) {
      if (member.dialect <= rule_.dialect) known += (known.empty() ? "" : ", ") + name;
    }
    return fail(Code::invalid, where_ + ": unknown member; known are " + known);
  }
  Status needs_dialect() const {
    return fail(Code::invalid, where_ + ": belongs to dialect 2; add \"dialect\": 2 to the document");
  }

  /// Reads the name of an enum, or returns an error with all names.
  template <class E, std::size_t N>
  Status named(E& slot, const std::array<Name<E>, N>& names, const Value& value) {
    const auto* text = value.string();
    std::string known;
    for (const auto& one : names) {
      if (text != nullptr && *text == one.name) {
        if (one.dialect > rule_.dialect) return needs_dialect();
        slot = one.value;
        return {};
      }
      if (one.dialect <= rule_.dialect) known += (known.empty() ? "" : ", ") + std::string(one.name);
    }
    return unexpected(where_, "one of " + known, value);
  }

  Status word(bool& slot, std::string_view only, const Value& value) const {
    DRIFTD_TRY(const std::string found, text_of(value, where_));
    if (found != only) return unexpected(where_, render(Value(std::string(only))), value);
    slot = true;
    return {};
  }

  Result<std::string> filled_text(const Value& value) const {
    DRIFTD_TRY(std::string out, text_of(value, where_));
    if (out.empty()) return unexpected(where_, "a text that is not empty", value);
    return out;
  }

  Status unit(const Value& value) {
    DRIFTD_TRY(rule_.unit, text_of(value, where_));
    if (rule_.unit.size() <= kMaxUnitBytes) return {};
    return fail(Code::invalid, where_ + ": a unit has at most " + std::to_string(kMaxUnitBytes) + " bytes");
  }

  /// No member of a default may have a default of its own: a rule such as `**` would be its own member without an end.
  /// Dialect 2 allows members, but not for such a pattern (SchemaParser looks).
  Status read_default(const Value& value) {
    if (rule_.dialect == 1 && holds_members(value))
      return fail(Code::invalid, where_ +
                                     ": expected a scalar, {} or a list without objects, found an object with members; "
                                     "give each member a default of its own, as in \"a.b\": {\"default\": 1}");
    rule_.default_value = value;
    return {};
  }
  Status tokens(const Value& value) {
    if (value.object() == nullptr) return fail(Code::invalid, where_ + ": expected {\"true\": […], \"false\": […]}");
    for (const auto& [name, words] : *value.object()) {
      if (name != "true" && name != "false")
        return fail(Code::invalid, where_ + "." + name + ": expected true or false");
      DRIFTD_CHECK(store(name == "true" ? rule_.true_tokens : rule_.false_tokens, texts(words, where_ + "." + name)));
    }
    return {};
  }

  Status trim(const Value& value) {
    const auto* several = rule_.dialect > 1 ? value.array() : nullptr;
    if (several == nullptr) return trim_one(value);
    for (const auto& one : *several) DRIFTD_CHECK(trim_one(one));
    return {};
  }
  Status trim_one(const Value& value) {
    const std::map<std::string, bool*, std::less<>> first = {{"space", &rule_.trim_space}, {"eol", &rule_.trim_eol}},
                                                    second = {{"runs", &rule_.trim_runs},
                                                              {"slash", &rule_.trim_slash},
                                                              {"dot", &rule_.trim_dot},
                                                              {"quotes", &rule_.trim_quotes}};
    const std::string word = value.string() == nullptr ? "" : *value.string();
    const auto found = first.find(word);
    const auto later = rule_.dialect > 1 ? second.find(word) : second.end();
    if (found == first.end() && later == second.end())
      return unexpected(where_,
                        rule_.dialect > 1 ? R"("space", "eol", "runs", "slash", "dot", "quotes", or a list of them)"
                                          : R"("space" or "eol")",
                        value);
    *(found != first.end() ? found->second : later->second) = true;
    return {};
  }

  Status words(const Value& value) {
    if (value.object() == nullptr) return unexpected(where_, R"({"word": [values that mean it]})", value);
    for (const auto& [word, values] : *value.object()) {
      DRIFTD_TRY(Value::Array all, list(values, where_ + "." + word));
      all.emplace_back(word);
      for (const auto& one : all) {
        const auto text = types::scalar_text(one);
        if (!text) return fail(Code::invalid, where_ + "." + word + ": " + text.error().message);
        const auto [at, is_new] = rule_.words.try_emplace(types::lower(*text), word);
        if (!is_new && at->second != word)
          return fail(Code::invalid, where_ + "." + word + ": " + render(one) + " means " + at->second + ", too");
      }
    }
    return {};
  }

  Status type(const Value& value) {
    const auto* several = rule_.dialect > 1 ? value.array() : nullptr;
    if (several == nullptr || several->empty()) return named(rule_.type, kTypes, value);
    DRIFTD_CHECK(named(rule_.type, kTypes, several->front()));
    for (std::size_t i = 1; i < several->size(); ++i)
      DRIFTD_CHECK(named(rule_.or_types.emplace_back(), kTypes, (*several)[i]));
    return {};
  }

  Status open(const Value& value) {
    if (value.boolean() != nullptr) return store(rule_.open, flag_of(value, where_));
    if (value.array() == nullptr) return unexpected(where_, "true, or a list of patterns of names", value);
    return globs(rule_.open_names, value);
  }

  Status globs(std::vector<Glob>& to, const Value& value) const {
    DRIFTD_TRY(const auto patterns, texts(value, where_));
    for (const auto& pattern : patterns) to.push_back(Glob::of_name(pattern));
    return {};
  }
  Status hidden(const Value& value) { return globs(rule_.hidden, value); }

  Status accepts(const Value& value) {
    if (value.object() == nullptr)
      return unexpected(where_, R"({"value": [patterns of values that it accepts]})", value);
    for (const auto& [text, patterns] : *value.object()) {
      DRIFTD_TRY(const auto all, texts(patterns, where_ + "." + text));
      for (const auto& pattern : all) rule_.accepts[text].push_back(Glob::of_name(pattern));
    }
    return {};
  }

  Status expands(const Value& value) {
    if (value.object() == nullptr) return unexpected(where_, R"({"element": [elements that it stands for]})", value);
    for (const auto& [name, elements] : *value.object()) {
      const auto* all = elements.array();
      const bool by_version = all != nullptr && !all->empty() && all->front().array() != nullptr;
      const Value::Array versions = by_version ? *all : Value::Array{elements};
      if (rule_.other_expands.size() + 1 < versions.size()) rule_.other_expands.resize(versions.size() - 1);
      for (std::size_t i = 0; i < versions.size(); ++i)
        DRIFTD_CHECK(store((i == 0 ? rule_.expands : rule_.other_expands[i - 1])[name],
                           texts(versions[i], where_ + "." + name)));
    }
    return {};
  }

  Status same(const Value& value) {
    DRIFTD_TRY(const Value::Array groups, list(value, where_));
    for (const auto& group : groups) {
      if (group.array() == nullptr || group.array()->size() < 2)
        return unexpected(where_, "lists of at least two values", group);
      rule_.same.push_back(*group.array());
    }
    return {};
  }

  Status between(const Value& value) {
    const auto is_bound = [](const Value& one) { return one.number() || (one.string() && !one.string()->empty()); };
    const auto* bounds = value.array();
    const bool whole =
        bounds != nullptr && bounds->size() == 2 && is_bound(bounds->front()) && is_bound(bounds->back());
    if (!whole) return unexpected(where_, "two bounds, each a number or the name of a member", value);
    rule_.between = *bounds;
    return {};
  }

  /// Reads {"of": member, "values": {text: …}} and returns the values.
  Result<const Value::Object*> by_member(const Value& value, std::string& of, std::string_view what) const {
    const Value* name = value.find("of");
    const Value* values = value.find("values");
    const bool whole = name != nullptr && name->string() != nullptr && values != nullptr &&
                       values->object() != nullptr && value.object()->size() == 2;
    if (!whole)
      return unexpected(where_, R"({"of": "member", "values": {"its value": )" + std::string(what) + "}}", value);
    of = *name->string();
    return values->object();
  }

  Status default_by(const Value& value) {
    DefaultBy made;
    DRIFTD_TRY(const auto* values, by_member(value, made.of, "default"));
    for (const auto& [name, one] : *values) {
      if (holds_members(one)) return unexpected(where_ + ".values." + name, "a scalar, {} or a list", one);
      made.values.emplace(name, one);
    }
    rule_.default_by = std::move(made);
    return {};
  }

  Status rule_by(const Value& value) {
    RuleBy made;
    DRIFTD_TRY(const auto* values, by_member(value, made.of, "rule"));
    for (const auto& [name, one] : *values) {
      const std::string place = where_ + ".values." + name;
      if (one.object() == nullptr) return unexpected(place, "an object with members of a rule", one);
      for (const auto& [member, ignored] : *one.object()) {
        if (!kReading.contains(member))
          return fail(Code::invalid, place + "." + member + ": another member can only decide how a value is read (" +
                                         listed(kReading) + ")");
      }
      auto variant = std::make_shared<AttributeRule>();
      variant->dialect = rule_.dialect;
      DRIFTD_CHECK(read_rule(*variant, *one.object(), place));
      made.values.emplace(name, std::move(variant));
    }
    rule_.rule_by = std::move(made);
    return {};
  }

  static std::string listed(const std::set<std::string, std::less<>>& names) {
    std::string out;
    for (const auto& name : names) out += (out.empty() ? "" : ", ") + name;
    return out;
  }

  /// What "rule_by" may say.
  inline static const std::set<std::string, std::less<>> kReading = {
      "type",     "unit",    "collection", "split",    "fold",    "trim",     "tokens",  "words",
      "encoding", "unicode", "prefixes",   "suffixes", "expands", "volatile", "at_least"};

  AttributeRule& rule_;
  std::string where_;
};

}  // namespace

Result<bool> flag_of(const Value& value, const std::string& where) {
  if (const auto* truth = value.boolean()) return *truth;
  return unexpected(where, "true or false", value);
}
Result<std::string> text_of(const Value& value, const std::string& where) {
  if (const auto* found = value.string()) return *found;
  return unexpected(where, "a string", value);
}
Result<std::uint32_t> positive_of(const Value& value, const std::string& where) {
  std::uint32_t out = 0;
  const auto* number = value.number();
  const auto* token = number != nullptr ? &number->token : nullptr;
  const auto* end = token != nullptr ? token->data() + token->size() : nullptr;
  if (token != nullptr) {
    const auto [at, error] = std::from_chars(token->data(), end, out);
    if (error == std::errc() && at == end && out > 0) return out;
  }
  return unexpected(where, "a whole number from 1", value);
}

Status store_class(ChangeClass& slot, const Value& value, const std::string& where) {
  DRIFTD_TRY(const std::string word, text_of(value, where));
  const auto parsed = parse_class(word);
  if (!parsed) return fail(Code::invalid, where + ": " + parsed.error().message);
  slot = *parsed;
  return {};
}

Status check_default(const AttributeRule& rule, const std::string& where) {
  if (!rule.default_value || !holds_members(*rule.default_value)) return {};
  if (rule.path.text().find("**") != std::string::npos)
    return fail(Code::invalid, where + ".default: an object with members cannot be the default of a pattern with **");
  if (render(*rule.default_value).size() > kMaxDefaultBytes)
    return fail(Code::invalid, where + ".default: an object with members has at most " +
                                   std::to_string(kMaxDefaultBytes) + " bytes as JSON");
  return {};
}

Status read_rule(AttributeRule& rule, const Value::Object& members, const std::string& where) {
  for (const auto& [name, member] : members) {
    std::string place = where;
    place += ".";
    place += name;
    DRIFTD_CHECK(RuleReader(rule, std::move(place)).read(name, member));
  }
  return {};
}

}  // namespace driftd::core
