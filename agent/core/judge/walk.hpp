// SPDX-License-Identifier: Apache-2.0
// The comparison of two bodies, step by step, for diff(). No other room includes this.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/drift.hpp"
#include "core/judge/diff.hpp"
#include "core/judge/normal_forms.hpp"

namespace driftd::core {

/// Both values of one attribute; nullptr if absent.
struct Sides {
  const Value* before = nullptr;
  const Value* after = nullptr;
};

/// Walks two bodies together. Lives on one stack frame.
class Walk {
 public:
  Walk(const KindSchema& schema, const DiffOptions& options);
  Difference run(const Value& before, const Value& after);

 private:
  struct UnreadPath {
    Glob path;
    std::string reason;
  };

  void compare_members(const Path& path, const Value& old_members, const Value& new_members);

  /// Returns true if both values are the same before they are normalised, and that is all there is to say of them.
  bool same_at_sight(const Sides& sides) const;

  /// Members are found by their names without ASCII case. Of two names that differ in case alone, the last one counts.
  void compare_folded_members(const Path& path, const Value& before, const Value& after);

  /// `owners`: the objects that the attribute is a member of.
  void compare_attribute(const Path& path, Sides sides, const Sides& owners);

  /// Returns why the attribute is filled in instead of compared. Empty if it is compared.
  std::string newly_known(const Path& path, const AttributeRule& rule, const Sides& sides, const Sides& owners) const;

  /// Compares what the values mean beside the other members of their objects.
  void compare_beside(const Path& path, const AttributeRule& rule, const Sides& sides, const Sides& owners);
  bool same_in_other_version(const Path& path, const AttributeRule& rule, const Sides& sides, const Sides& owners);
  void compare(const Path& path, const AttributeRule& rule, const Sides& sides);

  void compare_present(const Path& path, const AttributeRule& rule, const Sides& sides);

  /// Dialect 2: values whose normal forms differ may still be equal. The parts of a text or list are compared one by
  /// one; if they are equal but for what is filled in, the whole value is filled in, else it is one change.
  void compare_closely(const Path& path, const AttributeRule& rule, const Sides& sides);
  void compare_opened(const Path& path, const AttributeRule& rule, const Sides& sides);

  /// Compares two objects or elements apart. Returns what is unknown and filled in; empty if anything differs.
  template <class Compare>
  std::optional<Difference> apart(Compare compare) {
    Difference outer = std::exchange(out_, {});
    const int suppressed = suppressed_;
    auto* trace = std::exchange(trace_, nullptr);
    compare();
    trace_ = trace;
    suppressed_ = suppressed;
    Difference inner = std::exchange(out_, std::move(outer));
    return inner.changes.empty() ? std::optional(std::move(inner)) : std::nullopt;
  }
  std::optional<Difference> quietly(const Path& path, const Sides& sides);
  std::size_t masked_elements(const Path& path, const Value& value) const;  ///< of a list, with a masked part

  std::optional<Difference> same_element(const Path& list, const Value& left, const Value& right, std::size_t at);

  /// Pairs the elements of two lists, first those with the same normal form. Returns what is unknown and filled in
  /// inside the pairs; empty if the lists differ.
  std::optional<Difference> match(const Path& path, const AttributeRule& rule, const Value::Array& left,
                                  const Value::Array& right);

  std::optional<Difference> match_in_order(const Path& path, const AttributeRule& rule, const Value::Array& left,
                                           const Value::Array& right);

  static void append(Difference& to, Difference from);

  /// Returns true if the attribute that both values depend on (`basis`) differs. Then they cannot be compared, and the
  /// new one becomes the baseline.
  bool other_basis(const AttributeRule& rule) const;

  /// Compares two lists by the keys of their elements. Returns false if that cannot be done.
  bool compare_by_key(const Path& path, const AttributeRule& rule, const Sides& sides);
  void compare_elements(const Path& path, const AttributeRule& rule, const Forms::Keyed& left,
                        const Forms::Keyed& right);

  /// Compares one element of a list with keys. Providers name unread elements by index, changes name them by key.
  void compare_element(const Path& path, const Forms::Element* left, const Forms::Element* right);

  /// An object that was added or removed is one change at its root, unless parts of it are judged apart: those of
  /// another class, secrets, and those that are unknown, filled in or left out.
  void compare_subtree(const Path& path, const AttributeRule& rule, const Sides& sides);

  void compare_digests(const Path& path, const AttributeRule& rule, const Sides& sides);

  /// Compares a clear-text value with a digest, exactly if the keys are known. An object or a list that contains a
  /// digest cannot be compared; it counts as a change, because whoever writes the value also chooses its form and could
  /// hide a change by it.
  void compare_clear_text(const Path& path, const AttributeRule& rule, const Sides& sides);

  /// Reports a change, or unknown if a part of the list or value could not be read, or is masked. `beside_masked`: it
  /// is known that something else than what is masked differs.
  void report_change(const Path& path, const AttributeRule& rule, const Sides& sides, bool beside_masked = false);

  /// Returns why two values cannot be compared within the limits. A value that was added or removed is a change in any
  /// case.
  std::optional<std::string> beyond_bounds(const Path& path, const Sides& sides) const;

  const UnreadPath* find_unread(const Path& path) const;

  /// Returns the first unread path at or below `path` that `value` has; nullptr if there is none.
  const UnreadPath* find_unread_below(const Path& path, const Value* value) const;

  bool is_masked(const AttributeRule& rule, const Value* value) const;

  /// Returns `; ` and what would make the values equal. Empty without a trace.
  std::string hint_for(const AttributeRule& rule, const Sides& sides) const;
  void change(const Path& path, const AttributeRule& rule, const Sides& sides);
  void equal(const Path& path, const Sides& sides, const AttributeRule& rule, std::string reason);
  void suppress(const Path& path, const Sides& sides, const AttributeRule& rule, std::string reason);
  void unknown(const Path& path, const Sides& sides, const AttributeRule& rule, std::string reason);
  void fill(const Path& path, const Sides& sides, const AttributeRule& rule, std::string reason, bool same = false);

  void note(const Path& path, const Sides& sides, const AttributeRule& rule, std::string verdict,
            std::string reason) const;

  const KindSchema& schema_;
  const DiffOptions& options_;
  Forms forms_;
  Sides bodies_;
  std::vector<UnreadPath> unread_;
  std::vector<Glob> was_unread_;
  Difference out_;
  bool sight_counts_ = false;
  bool in_element_ = false;  ///< what is compared is part of an element of a list
  std::size_t pairs_ = 0;    ///< elements that were paired to be compared
  int suppressed_ = 0;       ///< attributes that differ as text but are equal
  std::vector<Step>* trace_ = options_.trace;
};

}  // namespace driftd::core
