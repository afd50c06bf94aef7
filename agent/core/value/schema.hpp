// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "core/drift.hpp"
#include "core/value/path.hpp"
#include "core/value/value.hpp"

namespace driftd::core {

/// How an attribute's values are read before they are compared.
enum class ValueType {
  any,  // compared by structure, numbers as exact decimals
  string,
  integer,
  decimal,
  boolean,
  bytes,
  duration,
  percent,
  json,
  yaml,
  properties,
  pem,
  ssh_key,
  url,
  endpoint,
  host,
  inet,
  cidr,
  version,
  timestamp,
  enumeration
};
enum class Collection { none, list, set, multiset, map_by_keys, scalar_or_list };

/// Everything the schema says about the attributes that one path glob covers (`driftd-schema/1`, docs/formats.md).
struct AttributeRule {
  Glob path;
  ValueType type = ValueType::any;
  std::string unit;  ///< table and base unit: "postgres:8kB", "redis", "kubernetes", "ms", "iso8601" ...
  Collection collection = Collection::none;
  std::vector<std::string> keys;         ///< map_by_keys: members that identify an element
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
};

/// The typed schema of one resource kind. Immutable after parse; shared by threads.
class KindSchema {
 public:
  /// Parses a driftd-schema/1 document; `invalid` names what and where. Unknown members are errors.
  static Result<std::shared_ptr<const KindSchema>> parse(std::string_view json);
  /// Returns a schema without rules: every attribute is `any`, class config.
  static std::shared_ptr<const KindSchema> unknown(std::string kind);

  const std::string& kind() const { return kind_; }
  std::uint32_t revision() const { return revision_; }
  /// Returns the most specific rule for `path`, or the kind's default rule if none matches.
  const AttributeRule& rule(const Path& path) const;
  /// The same, but returns nullptr if no rule of the document covers `path`.
  const AttributeRule* find_rule(const Path& path) const;
  /// Returns what find_rule() returns for each element of a list at `list` and of lists in it. Empty if that may depend
  /// on the element.
  std::optional<const AttributeRule*> find_element_rule(const Path& list) const;
  /// Returns the class of the rule at `path`, else of the nearest ancestor whose rule has one, else the kind's.
  ChangeClass cls(const Path& path) const;
  const std::vector<AttributeRule>& rules() const { return rules_; }
  /// Name of the attribute whose value identifies the monitored system. Empty if there is none.
  const std::string& identity() const { return identity_; }
  /// True if resources of this kind are sources (a Terraform state): their changes of class config have the policy
  /// `auto` if they come from an apply, which is seen by a higher metadata.serial under the same lineage.
  bool source() const { return source_; }

 private:
  friend class SchemaParser;
  std::string kind_, identity_;
  bool source_ = false;
  std::uint32_t revision_ = 1;
  ChangeClass cls_ = ChangeClass::config;
  std::vector<AttributeRule> rules_;  ///< most specific first
  AttributeRule default_;
};

/// Returns the normal form of one value under a rule, as canonical JSON text. Values are equal if their texts are.
/// Returns `invalid` if the value cannot be read as the rule's type; then the raw structures are compared. Returns
/// `budget` if reading it would cost too much; then the attribute is unknown.
Result<std::string> normalise(const AttributeRule& rule, const Value& value);
/// Joins normal forms of elements: a set is sorted without duplicates, a multiset sorted, a list keeps its order.
std::string join_collection(Collection collection, std::vector<std::string> parts);
/// Renders the rule for people: `duration(postgres:ms) set of "retention"`.
std::string render(const AttributeRule& rule);

}  // namespace driftd::core
