// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "core/drift.hpp"
#include "core/value/attribute_rule.hpp"

namespace driftd::core {

/// The typed schema of one resource kind. Shared by threads: nothing of it changes after parse but the kept merged
/// rules of dialect 2, which have a lock.
class KindSchema {
 public:
  /// Parses a driftd-schema/1 document; `invalid` names what and where. Unknown members are errors.
  static Result<std::shared_ptr<const KindSchema>> parse(std::string_view json);
  /// Returns a schema without rules: every attribute is `any`, class config.
  static std::shared_ptr<const KindSchema> unknown(std::string kind);

  const std::string& kind() const { return kind_; }
  std::uint32_t revision() const { return revision_; }
  int dialect() const { return default_.dialect; }
  /// Returns the rule for `path`: of the most specific pattern in dialect 1, of all patterns together in dialect 2. If
  /// none matches, the kind's default rule.
  const AttributeRule& rule(const Path& path) const;
  /// The same, but returns nullptr if no rule of the document covers `path`.
  const AttributeRule* find_rule(const Path& path) const;
  /// Dialect 2: returns the rule for a scalar element of a list: the list's, with what patterns of its elements add.
  const AttributeRule& scalar_rule(const Path& list, const Path& element) const;
  /// Returns what find_rule() returns for each element of a list at `list` and of lists in it. Empty if that may depend
  /// on the element.
  std::optional<const AttributeRule*> find_element_rule(const Path& list) const;
  /// Returns the class of the rule at `path`, else of the nearest ancestor whose rule has one, else the kind's.
  ChangeClass cls(const Path& path) const;
  /// Returns the first rule that cannot mean what it says, as an error with its pattern and member. parse() refuses
  /// such a document of dialect 2; one of dialect 1 keeps the meaning that it had.
  Status check() const;
  const std::vector<AttributeRule>& rules() const { return rules_; }  ///< one for each pattern, most specific first
  /// Name of the attribute whose value identifies the monitored system. Empty if there is none.
  const std::string& identity() const { return identity_; }
  /// True if resources of this kind are sources (a Terraform state): their changes of class config have the policy
  /// `auto` if they come from an apply, which is seen by a higher metadata.serial under the same lineage.
  bool source() const { return source_; }
  /// True if the version of a record changes whenever anybody writes the resource. Two readings under one version are
  /// then of the same state, and what differs between them is filled in silently (a newer server adds defaults).
  bool versioned() const { return versioned_; }
  /// True unless the document is complete (it names all attributes that there are), none of its patterns but those that
  /// end with `**` is for `path`, and that is an attribute: a member of the body or of an element of a list. Members of
  /// other objects may have names that nobody foresees (tags).
  bool names(const Path& path) const;
  /// True if two values that are the same are always equal: no rule hides values, or gives them a default that depends
  /// on other attributes.
  bool same_values_are_equal() const { return same_values_are_equal_; }
  /// True if some member counts as another one of its object (`into`).
  bool has_into() const { return has_into_; }

 private:
  friend class SchemaParser;
  using Patterns = std::vector<std::size_t>;  ///< indices of `rules_`, most specific first
  const AttributeRule* merged(const Patterns& patterns) const;

  std::string kind_, identity_;
  bool source_ = false, versioned_ = false, complete_ = false, same_values_are_equal_ = true, has_into_ = false;
  std::uint32_t revision_ = 1;
  ChangeClass cls_ = ChangeClass::config;
  std::vector<AttributeRule> rules_;
  std::vector<Value> members_;  ///< what the document says of each of `rules_`; dialect 2 only
  AttributeRule default_;
  mutable std::mutex merging_;
  mutable std::map<Patterns, AttributeRule> merged_, scalar_rules_;  ///< filled on demand; entries stay
};

/// Returns the normal form of one value under a rule, as canonical JSON text. Values are equal if their texts are.
/// Returns `invalid` if the value cannot be read as the rule's type; then the raw structures are compared. Returns
/// `budget` if reading it would cost too much; then the attribute is unknown.
Result<std::string> normalise(const AttributeRule& rule, const Value& value);
/// Returns true if two texts mean the same although their normal forms differ: a reference and a longer form of it, a
/// version and a deeper one. This is no equivalence relation: `1.2` is both `1.2.3` and `1.2.4`.
bool equivalent(const AttributeRule& rule, const Value& a, const Value& b);
/// Returns true if the rule `accepts` the later value in place of the earlier one.
bool accepts(const AttributeRule& rule, const Value& before, const Value& after);
/// Returns true if the value is a version that says nothing (`latest`), so that it equals no other and differs from
/// none.
bool names_no_version(const AttributeRule& rule, const Value& value);
/// Returns the parts of a text, without white space at their ends; empty ones are left out. `budget` if there are too
/// many.
Result<Value::Array> split(std::string_view text, std::string_view separator);
/// Returns the parts of all texts of a list, and of lists in it (`flat`). An element that is not a text stays as it is.
Result<Value::Array> parts_of_elements(const Value::Array& elements, std::string_view separator);
/// Joins normal forms of elements: a set is sorted without duplicates, a multiset sorted, a list keeps its order.
std::string join_collection(Collection collection, std::vector<std::string> parts);
/// Renders the rule for people: `duration(postgres:ms) set of "retention"`.
std::string render(const AttributeRule& rule);

}  // namespace driftd::core
