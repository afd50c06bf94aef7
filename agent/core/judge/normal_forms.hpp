// SPDX-License-Identifier: Apache-2.0
// Normal forms of whole subtrees under a schema, for diff() and redact(). No other room includes this.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/value/schema.hpp"

namespace driftd::core {

/// Normal forms by path. Borrows the schema. Keeps the forms of values that the schema gives, because a large default
/// would otherwise be rendered once for each member that its rule covers. For one thread.
class Forms {
 public:
  /// `known_names`: names of one thing are known that share no part, so coarse forms have no references.
  explicit Forms(const KindSchema& schema, bool known_names = false) : schema_(schema), known_names_(known_names) {}

  /// Returns the canonical text of a subtree: children by their own rules, without members that are volatile,
  /// empty or equal to their default. A value that is not of its rule's type is {"$raw": structure}.
  std::string of(const Path& path, const Value& value) const;
  std::string element(const Path& list, std::size_t at, const Value& value) const;  ///< of one of a list
  /// Returns a coarser form, the same for all values that diff() may find equal: without members that the system adds,
  /// hides or never shows, references by their last part. Dialect 2 pairs elements by it.
  std::string coarse(const Path& list, std::size_t at, const Value& value) const;
  bool same(const Path& path, const Value& a, const Value& b) const { return of(path, a) == of(path, b); }
  /// Returns true if the values are equal apart from digests that were made with different keys.
  bool same_but_keys(const Path& path, const Value& a, const Value& b) const;
  /// Returns true if the values differ before they are normalised; nullptr is an absent value.
  static bool raw_differs(const Value* a, const Value* b);

  /// Returns the effective value of an attribute: an empty equivalent counts as absent, and an absent one is the
  /// default. nullptr if there is no value. `owner` is the object of the attribute, on whose members a default may
  /// depend.
  const Value* effective(const AttributeRule& rule, const Value* value, const Value* owner) const;
  /// Returns what the value means beside the other members of its object: an address with its netmask, a list without
  /// what it may hold, a value read as another member says. Empty if it means itself.
  std::optional<Value> beside(const Path& path, const AttributeRule& rule, const Value& value, const Value* owner,
                              const Value* body = nullptr) const;
  /// Returns the object with members that count as others (`into`) where they count; empty if it has none.
  std::optional<Value> gathered(const Path& path, const Value& object) const;
  /// Does the same as gathered() for all objects at and below `path`.
  void gather(const Path& path, Value& value) const;
  /// Returns how another member says that the value is read; nullptr if it says nothing.
  /// `body`: of the side, for a rule that a member of the body chooses; without it such a rule is not chosen.
  const AttributeRule* variant(const Path& path, const AttributeRule& rule, const Value* owner,
                               const Value* body = nullptr) const;
  /// Returns what the value is read as: the parts of a text (`split`), a list of one (`single`), the content of a text
  /// (`inside`). Empty if it is read as it is. `budget` if reading it would cost too much.
  Result<std::optional<Value>> opened(const AttributeRule& rule, const Value& value) const;
  /// Returns true if the element has a rule of its own, so that the list's rule does not apply to it.
  bool has_own_form(const Path& element, const Value& value) const;
  std::string leaf(const AttributeRule& rule, const Value& value) const;
  /// Returns true if the value is one of the rule's placeholders behind which the system hides the real one.
  bool masked(const AttributeRule& rule, const Value& value) const;
  bool masked_inside(const Path& path, const Value& value) const;
  /// Dialect 2: returns true for a value that the schema itself gives, as empty or as a placeholder. It is not a
  /// secret, and as a digest it would not be recognised.
  bool says_nothing(const AttributeRule& rule, const Value& value) const {
    return rule.dialect > 1 && (masked(rule, value) || effective(rule, &value, nullptr) != &value);
  }
  /// Returns why the normal form of the value would cost too much. Empty if it has one within the limits, or if the
  /// value is not of its type.
  std::optional<std::string> beyond_bounds(const Path& path, const Value& value) const;
  /// Returns true if objects under this rule are compared member by member.
  bool is_structure(const AttributeRule& rule) const { return !is_document(rule.type) || rule.inside; }

  /// Returns true if two members have names that differ in case alone. Then their names are not folded.
  static bool has_twin_names(const Value& object);
  /// Returns the path of a member whose name is compared without case: as it is written, or in lower case if only then
  /// patterns know it.
  Path folded_child(const Path& path, std::string_view name) const;

  /// While it lives, values inside of a text are compared, if the rule reads one. There null is a value: in a text it
  /// was written by somebody, and may mean something (`"ResultPath": null`).
  class InText {
   public:
    InText(const Forms& forms, const AttributeRule& rule) : forms_(forms), reads_(rule.inside ? 1 : 0) {
      forms_.in_text_ += reads_;
    }
    ~InText() { forms_.in_text_ -= reads_; }
    InText(const InText&) = delete;
    InText& operator=(const InText&) = delete;

   private:
    const Forms& forms_;
    int reads_;
  };

  struct Element {
    std::string selector;  ///< `name=x`
    std::string name;      ///< text of the first key
    const Value* value = nullptr;
    std::size_t at = 0;  ///< index in the list
  };
  using Keyed = std::map<std::string, Element>;  ///< key: the normal form of the element's keys
  /// Returns the elements by their keys. Empty if an element lacks a key or two elements share one.
  std::optional<Keyed> keyed(const AttributeRule& rule, const Path& path, const Value::Array& array) const;

  /// How digests inside the elements of a list are bound to a path: by the element's keys if the schema gives the list
  /// keys, by nothing if order does not matter, else by the index. So an element that moves keeps its digests.
  struct ElementPaths {
    bool unordered = false;
    std::vector<std::string> selectors;  ///< by index; only for a list with keys
    Path of(const Path& list, std::size_t at) const { return list.with(segment(at)); }
    Path::Segment segment(std::size_t at) const;
  };
  ElementPaths element_paths(const Path& list, const Value::Array& array) const;
  /// Returns the path that a digest at `path` of `body` is bound to. `path` may name elements by index or by key.
  Path stable_path(const Value& body, const Path& path) const;
  void read_as_version(std::size_t version) { version_ = version; }  ///< `expands`; 0: the first
  /// Returns how many values of the schema (`default`, `empty`) were rendered.
  std::size_t rendered_schema_values() const { return rendered_schema_values_; }

 private:
  /// Returns the rule for a scalar element of a list whose rule is `rule`.
  const AttributeRule& scalar_rule(const Path& path, const AttributeRule& rule, const Path& element) const;
  template <class T>
  const T* by_member(const Path& path, const ByMember<T>& by, const Value* owner) const;
  std::string object(const Path& path, const Value& owner) const;
  /// Returns the form of one member of `owner`. Empty if it does not count: volatile, empty or its default.
  std::optional<std::string> member_form(const Path& path, const Value& member, const Value& owner) const;
  std::string array(const Path& path, const AttributeRule& rule, const Value::Array& value) const;
  /// Returns true if `form` is the normal form of the rule's default as a value at `path`.
  bool is_default(const AttributeRule& rule, const Path& path, const std::string& form) const;
  /// Returns the default that depends on the owner's other members, or the rule's own. nullptr if there is none.
  const Value* default_of(const AttributeRule& rule, const Value* owner) const;
  std::string default_form(const AttributeRule& rule, const Path& path) const;
  const std::set<std::string>& empty_forms(const AttributeRule& rule) const;

  const KindSchema& schema_;
  bool known_names_ = false;
  std::size_t version_ = 0;  ///< of `expands`
  /// By rule, and by the rule of a list's elements, on which a default's form also depends.
  mutable std::map<std::pair<const AttributeRule*, const AttributeRule*>, std::string> default_forms_;
  mutable std::map<const AttributeRule*, std::set<std::string>> empty_forms_;
  /// by_member(): by the member that decides and its rule, the meaning of each value
  mutable std::map<std::pair<const void*, const AttributeRule*>, std::map<std::string, std::string>> meanings_;
  mutable std::size_t rendered_schema_values_ = 0;
  mutable std::map<const AttributeRule*, AttributeRule> element_rules_;  ///< by the rule of their list; dialect 1
  mutable int rendering_default_ = 0;
  mutable int in_text_ = 0;      ///< texts around the value that is compared
  mutable bool coarse_ = false;  ///< coarse() is under way
};

}  // namespace driftd::core
