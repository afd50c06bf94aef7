// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/value/path.hpp"
#include "core/value/value.hpp"
#include "core/value/value_type.hpp"

namespace driftd::core {

enum class ChangeClass;  // core/drift.hpp

enum class Collection { none, list, set, multiset, map_by_keys, scalar_or_list };
enum class Encoding { none, base64, gzip_base64, percent };
enum class UnicodeForm { none, nfc, nfkc };
enum class DigestForm { none, sha1, sha256 };

struct AttributeRule;

/// "default_by", "rule_by": something depends on the text of another member of the same object.
template <class T>
struct ByMember {
  std::string of;
  std::map<std::string, T> values;  ///< by that text; `*` is any run of characters; "": the member is absent
};
using DefaultBy = ByMember<Value>;
using RuleBy = ByMember<std::shared_ptr<const AttributeRule>>;

/// Returns the pattern for a text: the text itself, else the longest pattern that matches it. Empty if there is none.
std::optional<std::string_view> find_pattern(const std::vector<std::string_view>& patterns, std::string_view text);
template <class T>
const T* find_value(const ByMember<T>& by, std::string_view text) {
  std::vector<std::string_view> patterns;
  for (const auto& [pattern, value] : by.values) patterns.push_back(pattern);
  const auto found = find_pattern(patterns, text);
  return found ? &by.values.find(std::string(*found))->second : nullptr;
}

/// Everything the schema says about the attributes that one path glob covers (`driftd-schema/1`, docs/formats.md). In
/// dialect 2 the rule of a path is made of all the globs that cover it.
struct AttributeRule {
  Glob path;
  int dialect = 1;
  ValueType type = ValueType::any;
  std::string unit;  ///< table and base unit: "postgres:8kB", "redis", "kubernetes", "ms", "iso8601" ...
  Collection collection = Collection::none;
  std::vector<std::string> keys;         ///< map_by_keys: members that identify an element; in dialect 2 paths
  std::optional<ChangeClass> cls;        ///< absent: the class of the kind
  std::optional<Value> default_value;    ///< "default": the value that an absent attribute has
  std::vector<Value> empty_equivalents;  ///< "empty": values that are equal to an absent attribute
  /// name of the attribute without which values have no meaning: if that differs, they cannot be compared
  std::string basis;
  std::vector<std::string> true_tokens, false_tokens;
  std::vector<Value> masked;  ///< "masked": values that hide the real one, which is then unknown
  bool fold = false;          ///< ASCII case does not matter
  bool trim_space = false, trim_eol = false;
  bool is_volatile = false, computed = false, sensitive = false, write_only = false;
  std::uint32_t since = 1;  ///< schema revision that added it

  // dialect 2
  bool open = false;             ///< elements or members that only the later value has are not compared
  std::vector<Glob> open_names;  ///< the same, but only for those with such a text, key or name
  bool closed = false;           ///< an expected object is whole: members that it does not have are not expected
  bool ordered = false;          ///< map_by_keys: the order of the elements counts
  bool single = false;           ///< a scalar or an object where a list is expected is a list of one
  bool inside = false;           ///< the text is read, and rules hold for the values in it
  bool fold_names = false;       ///< names of members are compared without ASCII case
  bool hollow = false;           ///< values that hold nothing at any depth count as absent
  bool trim_runs = false, trim_slash = false, trim_dot = false, trim_quotes = false;
  std::vector<std::string> prefixes, suffixes;  ///< do not count at the ends of a text
  std::vector<ValueType> or_types;              ///< "type" is a list: tried in turn after `type`
  std::optional<std::string> split;             ///< a text is a list of the parts between this; "": its characters
  bool flat = false;                            ///< `split`: elements of a list are split, too
  std::map<std::string, std::vector<std::string>> expands;                     ///< an element that stands for several
  std::vector<std::map<std::string, std::vector<std::string>>> other_expands;  ///< the same in other versions
  bool in_effect = false;                    ///< of `+name` and `-name`, the last counts
  bool covers = false;                       ///< an element with `*` covers those that it matches
  std::vector<std::vector<Value>> same;      ///< groups of values that mean the same
  std::map<std::string, std::string> words;  ///< "words": lower-case text of a value -> the word that it means
  Encoding encoding = Encoding::none;
  UnicodeForm unicode = UnicodeForm::none;
  std::vector<Glob> hidden;  ///< texts that match hide the value
  std::optional<DefaultBy> default_by;
  std::optional<RuleBy> rule_by;      ///< how the value is read depends on another member
  std::string default_of;             ///< name of the member of the same object whose value is the default
  std::string generated_from;         ///< name of the member of the same object with the prefix of a generated value
  std::vector<std::string> refers;    ///< types of what a reference means; empty: any
  bool overrides = false;             ///< a member that counts as another one takes the place of what that one has
  std::string into;                   ///< name of the member of the same object as which this one counts
  std::string netmask_of;             ///< name of the member of the same object that has the netmask of this address
  std::vector<std::string> may_hold;  ///< names of members of the same object whose values do not count as elements
  std::map<std::string, std::vector<Glob>> accepts;  ///< earlier text -> patterns of later ones that are no drift
  bool unordered_runs = false;                       ///< elements that begin alike and stand side by side have no order
  DigestForm digest = DigestForm::none;              ///< a value may be this digest of the other one
  bool at_least = false;                             ///< a larger value is no drift
  std::vector<Value> other_defaults;                 ///< values that an absent one has in other versions: unknown
  std::vector<Value> between;                        ///< two bounds: numbers, or names of members of the same object

  bool may_open() const { return open || !open_names.empty(); }
  /// Returns true if an element or member that only the later value has is not compared.
  bool allows(std::string_view name) const;
};

/// Returns true if both rules read values in the same way: type, unit, collection, what counts as equal, and whether
/// the value is secret.
bool same_interpretation(const AttributeRule& a, const AttributeRule& b);

/// Returns the rule for the scalar elements of a list: the list's own, without what concerns the list.
AttributeRule element_rule(const AttributeRule& list);

}  // namespace driftd::core
