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
  std::optional<ChangeClass> cls;        ///< absent: the kind's
  std::optional<Value> fallback;         ///< "default": absent means this
  std::vector<Value> empty_equivalents;  ///< "empty": these, and absence, are one
  /// attribute of the body that says what this one depends on: with another, values cannot be compared
  std::string basis;
  std::vector<std::string> true_tokens, false_tokens;
  std::vector<Value> masked;  ///< "masked": the system hides the value behind these: unknown
  bool fold = false;          ///< ASCII case does not matter
  bool trim_space = false, trim_eol = false;
  bool is_volatile = false, computed = false, sensitive = false, write_only = false;
  std::uint32_t since = 1;  ///< schema revision that brought it
};

/// The typed schema of one resource kind. Immutable after parse; shared by threads.
class KindSchema {
 public:
  /// Parses a driftd-schema/1 document; `invalid` names what and where. Unknown members are errors.
  static Result<std::shared_ptr<const KindSchema>> parse(std::string_view json);
  /// A schema that knows nothing: every attribute is `any`, class config.
  static std::shared_ptr<const KindSchema> unknown(std::string kind);

  const std::string& kind() const { return kind_; }
  std::uint32_t revision() const { return revision_; }
  /// The most specific rule for `path`; a rule of the kind's defaults when none matches. Never null.
  const AttributeRule& rule(const Path& path) const;
  /// The same, or nullptr when no rule of the document covers `path`.
  const AttributeRule* find_rule(const Path& path) const;
  /// Class of the rule at `path`, else of the nearest ancestor's that names one, else the kind's.
  ChangeClass cls(const Path& path) const;
  const std::vector<AttributeRule>& rules() const { return rules_; }
  const std::string& identity() const { return identity_; }  ///< attribute that is the system identity; empty: none
  bool source() const { return source_; }  ///< config is `auto` when metadata.serial rose under the same lineage

 private:
  friend class SchemaParser;
  std::string kind_, identity_;
  bool source_ = false;
  std::uint32_t revision_ = 1;
  ChangeClass cls_ = ChangeClass::config;
  std::vector<AttributeRule> rules_;  ///< most specific first
  AttributeRule default_;
};

/// Normal form of one value under a rule, as canonical JSON text: equal texts, equal values. `invalid` when the value
/// cannot be read as the rule's type; then the raw structure is compared.
Result<std::string> normalise(const AttributeRule& rule, const Value& value);
/// Joins normal forms of elements: sets sorted and once, multisets sorted, lists as they are.
std::string join_collection(Collection collection, std::vector<std::string> parts);
/// `duration(postgres:ms) set of "retention"`: the rule in words.
std::string render(const AttributeRule& rule);

}  // namespace driftd::core
