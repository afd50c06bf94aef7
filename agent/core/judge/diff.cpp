// SPDX-License-Identifier: Apache-2.0
#include "core/judge/diff.hpp"

#include <algorithm>
#include <set>

#include "core/drift.hpp"
#include "core/judge/normal_forms.hpp"
#include "core/redact.hpp"

namespace driftd::core {
namespace {

/// Both values of one attribute; nullptr if absent.
struct Sides {
  const Value* before = nullptr;
  const Value* after = nullptr;
};

bool has_secret(const Change& change) { return is_of_secret(change.old_value) || is_of_secret(change.new_value); }

/// Walks two bodies together. Lives on one stack frame.
class Walk {
 public:
  Walk(const KindSchema& schema, const DiffOptions& options) : schema_(schema), options_(options), forms_(schema) {
    for (const auto& unread : options.unread) unread_.push_back({glob_of(unread.path), unread.reason});
    for (const auto& path : options.was_unread) was_unread_.push_back(glob_of(path));
  }

  Difference run(const Value& before, const Value& after) {
    static const Value kNothing{Value::Object{}};
    bodies_ = {&before, &after};
    compare_members(Path(), before.object() ? before : kNothing, after.object() ? after : kNothing);
    const auto by_path = [](const auto& a, const auto& b) { return a.path < b.path; };
    std::stable_sort(out_.changes.begin(), out_.changes.end(), by_path);
    std::stable_sort(out_.unknown.begin(), out_.unknown.end(), by_path);
    return std::move(out_);
  }

 private:
  struct UnreadPath {
    Glob path;
    std::string reason;
  };

  /// A path that cannot be parsed covers everything, because unknown must never become a drift.
  static Glob glob_of(const std::string& text) {
    auto glob = Glob::parse_path(text);
    return glob ? std::move(*glob) : Glob::parse_path("**").value();
  }

  void compare_members(const Path& path, const Value& before, const Value& after) {
    std::set<std::string_view> names;
    for (const auto& [name, member] : *before.object()) names.insert(name);
    for (const auto& [name, member] : *after.object()) names.insert(name);
    for (const auto name : names) compare_attribute(path.child(name), {before.find(name), after.find(name)});
  }

  void compare_attribute(const Path& path, Sides sides) {
    const AttributeRule& rule = schema_.rule(path);
    if (rule.is_volatile) return suppress(path, sides, rule, "volatile");
    if (const auto* unread = find_unread(path))
      return unknown(path, sides, rule, unread->reason.empty() ? "unreadable" : unread->reason);
    if (rule.write_only && sides.after == nullptr)
      return unknown(path, sides, rule, "write-only: the system never shows it");
    if (is_masked(rule, sides.after)) return unknown(path, sides, rule, "masked by the system");
    if (const auto reason = newly_known(path, rule, sides); !reason.empty()) return fill(path, sides, rule, reason);
    sides = {forms_.effective(rule, sides.before), forms_.effective(rule, sides.after)};
    compare(path, rule, sides);
  }

  /// Returns why the attribute is filled in instead of compared. Empty if it is compared.
  std::string newly_known(const Path& path, const AttributeRule& rule, const Sides& sides) const {
    if (sides.after == nullptr || options_.declared_only) return {};
    if (is_masked(rule, sides.before)) return "masked before";
    if (sides.before != nullptr) return {};
    if (rule.since > options_.old_revision) return "brought by schema revision " + std::to_string(rule.since);
    if (rule.computed) return "computed by the system";
    const bool unread =
        std::any_of(was_unread_.begin(), was_unread_.end(), [&](const Glob& glob) { return glob.matches(path); });
    return unread ? "readable for the first time" : "";
  }

  void compare(const Path& path, const AttributeRule& rule, const Sides& sides) {
    const auto& [before, after] = sides;
    if (before == nullptr && after == nullptr) return equal(path, sides, rule, "default or empty");
    if ((before && as_digest(*before)) || (after && as_digest(*after))) return compare_digests(path, rule, sides);
    if (before != nullptr && after != nullptr) return compare_present(path, rule, sides);
    const Value& one = before != nullptr ? *before : *after;
    const bool object = one.object() != nullptr && !one.object()->empty() && forms_.is_structure(rule);
    return object ? compare_subtree(path, rule, sides) : report_change(path, rule, sides);
  }

  void compare_present(const Path& path, const AttributeRule& rule, const Sides& sides) {
    const auto& [before, after] = sides;
    if (before->object() && after->object() && forms_.is_structure(rule)) return compare_members(path, *before, *after);
    if (rule.collection == Collection::map_by_keys && before->array() && after->array()) {
      const auto left = forms_.keyed(rule, path, *before->array()), right = forms_.keyed(rule, path, *after->array());
      if (left && right) return compare_elements(path, *left, *right);
    }
    if (options_.declared_only && rule.type == ValueType::any && same_text(*before, *after))
      return equal(path, sides, rule, "same text");
    if (forms_.same(path, *before, *after)) return equal(path, sides, rule, "same normal form");
    if (forms_.same_but_keys(path, *before, *after)) {
      if (options_.declared_only)
        return unknown(path, sides, rule, "secret: only its digest is known, which no declared value can equal");
      return fill(path, sides, rule, "digests under another key");
    }
    if (other_basis(rule)) return fill(path, sides, rule, "cannot be compared: another " + rule.basis);
    report_change(path, rule, sides);
  }

  /// Returns true if the attribute that both values depend on (`basis`) differs. Then they cannot be compared, and the
  /// new one becomes the baseline.
  bool other_basis(const AttributeRule& rule) const {
    if (rule.basis.empty()) return false;
    const Value* before = bodies_.before->find(rule.basis);
    const Value* after = bodies_.after->find(rule.basis);
    return before != nullptr && after != nullptr && !forms_.same(Path().child(rule.basis), *before, *after);
  }

  void compare_elements(const Path& path, const Forms::Keyed& left, const Forms::Keyed& right) {
    for (const auto& [key, element] : left) {
      const auto other = right.find(key);
      compare_element(path, &element, other == right.end() ? nullptr : &other->second);
    }
    for (const auto& [key, element] : right) {
      if (!left.contains(key)) compare_element(path, nullptr, &element);
    }
  }

  /// Compares one element of a list with keys. Providers name unread elements by index, changes name them by key.
  void compare_element(const Path& path, const Forms::Element* left, const Forms::Element* right) {
    const Path named = path.selected((left != nullptr ? left : right)->selector);
    const Sides sides{left ? left->value : nullptr, right ? right->value : nullptr};
    const UnreadPath* unread = left ? find_unread_below(path.child(left->at), left->value) : nullptr;
    if (unread == nullptr && right != nullptr) unread = find_unread_below(path.child(right->at), right->value);
    if (unread != nullptr)
      return unknown(named, sides, schema_.rule(named), "part of it is unreadable: " + unread->reason);
    compare_attribute(named, sides);
  }

  /// An object that was added or removed is one change at its root, unless parts of it are judged apart: those of
  /// another class, secrets, and those that are unknown, filled in or left out.
  void compare_subtree(const Path& path, const AttributeRule& rule, const Sides& sides) {
    static const Value kNothing{Value::Object{}};
    Difference outer = std::exchange(out_, {});
    const int suppressed = std::exchange(suppressed_, 0);
    const std::size_t steps = trace_ ? trace_->size() : 0;
    compare_members(path, sides.before ? *sides.before : kNothing, sides.after ? *sides.after : kNothing);
    const ChangeClass cls = schema_.cls(path);
    const bool whole = suppressed_ == 0 && out_.unknown.empty() && out_.filled.empty() && !out_.changes.empty() &&
                       std::all_of(out_.changes.begin(), out_.changes.end(),
                                   [&](const Change& change) { return change.cls == cls && !has_secret(change); });
    Difference inner = std::exchange(out_, std::move(outer));
    suppressed_ += suppressed;
    if (whole && trace_) trace_->erase(trace_->begin() + static_cast<std::ptrdiff_t>(steps), trace_->end());
    if (whole) return change(path, rule, sides);
    std::move(inner.changes.begin(), inner.changes.end(), std::back_inserter(out_.changes));
    std::move(inner.unknown.begin(), inner.unknown.end(), std::back_inserter(out_.unknown));
    std::move(inner.filled.begin(), inner.filled.end(), std::back_inserter(out_.filled));
  }

  void compare_digests(const Path& path, const AttributeRule& rule, const Sides& sides) {
    const auto left = sides.before ? as_digest(*sides.before) : std::nullopt,
               right = sides.after ? as_digest(*sides.after) : std::nullopt;
    const bool left_clear = sides.before && !sides.before->is_null() && !left,
               right_clear = sides.after && !sides.after->is_null() && !right;
    if (left_clear || right_clear) return compare_clear_text(path, rule, sides);
    if (!left || !right) return change(path, rule, sides);
    if (left->key_id != right->key_id || left->revision != right->revision) {
      return options_.declared_only ? unknown(path, sides, rule, "digests under different keys")
                                    : fill(path, sides, rule, "digests under another key");
    }
    if (left->hex != right->hex) return change(path, rule, sides);
    return left->withheld == right->withheld || options_.declared_only ? equal(path, sides, rule, "same digest")
                                                                       : fill(path, sides, rule, "same digest", true);
  }

  /// Compares a clear-text value with a digest, exactly if the keys are known. An object or a list that contains a
  /// digest cannot be compared; it counts as a change, because whoever writes the value also chooses its form and could
  /// hide a change by it.
  void compare_clear_text(const Path& path, const AttributeRule& rule, const Sides& sides) {
    const Value& clear = as_digest(*sides.before) ? *sides.after : *sides.before;
    const DigestRef digest = as_digest(*sides.before) ? *as_digest(*sides.before) : *as_digest(*sides.after);
    if (contains_digest(clear) && !options_.declared_only) return change(path, rule, sides);
    std::optional<DigestRef> same;
    if (options_.keys != nullptr && !contains_digest(clear)) {
      const auto made = sealed_digest(clear, options_.id, path, schema_, *options_.keys, digest.withheld);
      if (!made) return unknown(path, sides, rule, "cannot be compared: " + made.error().message);
      same = as_digest(*made);
    }
    const bool comparable = same && same->key_id == digest.key_id && same->revision == digest.revision;
    if (options_.declared_only && !comparable) {
      return unknown(path, sides, rule, "secret: only its digest is known, which no declared value can equal");
    }
    const bool was_clear = &clear == sides.before;
    if (!comparable) return fill(path, sides, rule, was_clear ? "became secret" : "is no longer secret");
    if (same->hex != digest.hex) return change(path, rule, sides);
    if (options_.declared_only) return equal(path, sides, rule, "same digest");
    fill(path, sides, rule, was_clear ? "the same value, now withheld" : "the same value, now shown", true);
  }

  /// Reports a change, or unknown if a part of the list or value could not be read.
  void report_change(const Path& path, const AttributeRule& rule, const Sides& sides) {
    const auto* unread = find_unread_below(path, sides.before);
    if (unread == nullptr) unread = find_unread_below(path, sides.after);
    if (unread != nullptr) return unknown(path, sides, rule, "part of it is unreadable: " + unread->reason);
    if (sides.after != nullptr && forms_.masked_inside(path, *sides.after))
      return unknown(path, sides, rule, "part of it is masked by the system");
    if (const auto reason = beyond_bounds(path, sides))
      return unknown(path, sides, rule, "cannot be compared: " + *reason);
    change(path, rule, sides);
  }

  /// Returns why two values cannot be compared within the limits. A value that was added or removed is a change in any
  /// case.
  std::optional<std::string> beyond_bounds(const Path& path, const Sides& sides) const {
    if (sides.before == nullptr || sides.after == nullptr) return std::nullopt;
    const auto reason = forms_.beyond_bounds(path, *sides.before);
    return reason ? reason : forms_.beyond_bounds(path, *sides.after);
  }

  const UnreadPath* find_unread(const Path& path) const {
    const auto it = std::find_if(unread_.begin(), unread_.end(),
                                 [&](const UnreadPath& unread) { return unread.path.matches(path); });
    return it == unread_.end() ? nullptr : &*it;
  }

  /// Returns the first unread path at or below `path` that `value` has; nullptr if there is none.
  const UnreadPath* find_unread_below(const Path& path, const Value* value) const {
    if (value == nullptr || unread_.empty()) return nullptr;
    if (const auto* here = find_unread(path)) return here;
    if (const auto* object = value->object()) {
      for (const auto& [name, member] : *object) {
        if (const auto* found = find_unread_below(path.child(name), &member)) return found;
      }
    }
    if (const auto* array = value->array()) {
      for (std::size_t i = 0; i < array->size(); ++i) {
        if (const auto* found = find_unread_below(path.child(i), &(*array)[i])) return found;
      }
    }
    return nullptr;
  }

  bool is_masked(const AttributeRule& rule, const Value* value) const {
    return value != nullptr && forms_.masked(rule, *value);
  }

  static bool same_text(const Value& a, const Value& b) {
    const auto text = [](const Value& v) {
      return v.string() ? *v.string() : v.array() || v.object() || v.is_null() ? std::string() : render(v);
    };
    return !text(a).empty() && text(a) == text(b);
  }

  void change(const Path& path, const AttributeRule& rule, const Sides& sides) {
    const bool redacted = (sides.before && as_digest(*sides.before)) || (sides.after && as_digest(*sides.after));
    const auto text = [](const Value* v) { return v ? std::optional(render(*v)) : std::nullopt; };
    auto before = text(sides.before);
    if (redacted && options_.keys && sides.before && !contains_digest(*sides.before)) {
      const auto made = sealed_digest(*sides.before, options_.id, path, schema_, *options_.keys, true);
      if (!made) return unknown(path, sides, rule, "cannot be compared: " + made.error().message);
      before = render(*made);  // the old value was clear text; as a withheld one it must not leave the agent any more
    }
    out_.changes.push_back({path.render(), schema_.cls(path), before, text(sides.after), redacted});
    note(path, sides, rule, "drift",
         sides.before == nullptr  ? "added"
         : sides.after == nullptr ? "removed"
                                  : "normal forms differ");
  }
  void equal(const Path& path, const Sides& sides, const AttributeRule& rule, std::string reason) {
    if (forms_.raw_differs(sides.before, sides.after)) ++suppressed_;
    note(path, sides, rule, "equal", std::move(reason));
  }
  void suppress(const Path& path, const Sides& sides, const AttributeRule& rule, std::string reason) {
    ++suppressed_;
    note(path, sides, rule, "equal", std::move(reason));
  }
  void unknown(const Path& path, const Sides& sides, const AttributeRule& rule, std::string reason) {
    out_.unknown.push_back({path.render(), reason});
    note(path, sides, rule, "unknown", std::move(reason));
  }
  void fill(const Path& path, const Sides& sides, const AttributeRule& rule, std::string reason, bool same = false) {
    out_.filled.push_back({path.render(), *sides.after, same});
    note(path, sides, rule, "equal", std::move(reason));
  }

  void note(const Path& path, const Sides& sides, const AttributeRule& rule, std::string verdict,
            std::string reason) const {
    if (trace_ == nullptr) return;
    const auto raw = [](const Value* v) { return v ? presentable(*v) : std::string(); };
    const auto norm = [&](const Value* v) { return v ? presentable_json(forms_.of(path, *v)) : std::string(); };
    trace_->push_back({path.render(), raw(sides.before), raw(sides.after), norm(sides.before), norm(sides.after),
                       render(rule), std::move(verdict), std::move(reason)});
  }

  const KindSchema& schema_;
  const DiffOptions& options_;
  Forms forms_;
  Sides bodies_;
  std::vector<UnreadPath> unread_;
  std::vector<Glob> was_unread_;
  Difference out_;
  int suppressed_ = 0;  ///< attributes that differ as text but are equal
  std::vector<Step>* trace_ = options_.trace;
};

}  // namespace

Difference diff(const Value& old_body, const Value& new_body, const KindSchema& schema, const DiffOptions& options) {
  return Walk(schema, options).run(old_body, new_body);
}

}  // namespace driftd::core
