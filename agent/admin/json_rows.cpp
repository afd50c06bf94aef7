// SPDX-License-Identifier: Apache-2.0
// Rows of lists with untrusted values in them, whole or in brief. [any thread]
#include <algorithm>

#include "admin/json.hpp"
#include "base/clock.hpp"
#include "base/escape.hpp"
#include "core/judge/decision.hpp"
#include "core/presentable_text.hpp"

namespace driftd::admin {
namespace {

using core::Value;
using OptionalJson = std::optional<std::string>;

constexpr std::size_t kMaxWholeValue = 16u << 10;  ///< bytes of both sides of a change, or of a resource
constexpr std::size_t kCutBytes = 1u << 10;        ///< bytes that are left of a value that is cut
constexpr std::size_t kMaxRowValues = 64u << 10;   ///< bytes of all values of one row
constexpr std::size_t kMaxPath = 4u << 10;         ///< bytes

Value flag(bool value) { return Value(value); }
Value word(std::string_view text) { return Value(std::string(text)); }
std::size_t size_of(const OptionalJson& text) { return text ? text->size() : 0; }

/// Two values of a row and their member names.
struct Pair {
  const char* old_name;
  const OptionalJson& before;
  const char* new_name;
  const OptionalJson& now;
};

/// The values of one row, and how many bytes of it they may still take.
class Values {
 public:
  explicit Values(Depth depth) : brief_(depth == Depth::brief) {}
  bool full() const { return brief_ && left_ == 0; }

  /// Adds both sides to `out`, and `cut` with the names of the values that were shortened.
  void add(Value::Object& out, const Pair& pair) {
    Value::Array cut;
    const std::size_t bytes = size_of(pair.before) + size_of(pair.now);
    const bool fits = !brief_ || bytes <= std::min(left_, kMaxWholeValue);
    if (fits) {
      if (pair.before) out.insert_or_assign(pair.old_name, shown(pair.before));
      if (pair.now) out.insert_or_assign(pair.new_name, shown(pair.now));
    } else {
      const std::string before = core::presentable_text(pair.before.value_or("")),
                        now = core::presentable_text(pair.now.value_or(""));
      const auto sides = around_difference(before, now, kCutBytes);
      if (pair.before) out.insert_or_assign(pair.old_name, side(pair.before, before, sides.first, pair.old_name, cut));
      if (pair.now) out.insert_or_assign(pair.new_name, side(pair.now, now, sides.second, pair.new_name, cut));
    }
    spend(fits ? bytes : 2 * kCutBytes);
    if (!cut.empty()) out.insert_or_assign("cut", Value(std::move(cut)));
  }
  void spend(std::size_t bytes) { left_ -= std::min(left_, bytes); }

 private:
  static Value side(const OptionalJson& json, const std::string& whole, const std::string& part, const char* name,
                    Value::Array& cut) {
    if (part == whole) return shown(json);
    cut.emplace_back(name);
    return part;
  }

  bool brief_;
  std::size_t left_ = kMaxRowValues;
};

Value change(const core::Change& change, Values& values, Depth depth) {
  const bool long_path = depth == Depth::brief && change.path.size() > kMaxPath;
  const std::string path = long_path ? std::string(front(change.path, kMaxPath)) + "…" : change.path;
  Value::Object out{{"path", path}, {"class", word(core::render(change.cls))}, {"redacted", flag(change.redacted)}};
  values.spend(path.size() + 64);
  const OptionalJson hidden = "\"[REDACTED]\"", none;
  const auto side = [&](const OptionalJson& json) -> const OptionalJson& {
    return json && change.redacted ? hidden : json;
  };
  values.add(out, {"old", side(change.old_value), "new", side(change.new_value)});
  return out;
}

/// Returns the first entries of a list of texts, as many as a row may still show.
Value some_of(const std::vector<std::string>& texts, Values& values) {
  Value::Array out;
  for (const auto& text : texts) {
    if (values.full()) break;
    out.emplace_back(text);
    values.spend(text.size() + 8);
  }
  return out;
}

/// Adds who has approved a drift that several persons must approve. An approval that ran out is still in the list, with
/// its time.
void put_approvals(Value::Object& out, const core::Drift& drift) {
  Value::Array given;
  for (const auto& approval : drift.approvals) {
    given.push_back(Value::Object{
        {"actor", approval.actor}, {"at", time(approval.at_ns)}, {"expires", time(approval.expires_ns.value_or(0))}});
  }
  out.emplace("approvals", std::move(given));
  out.emplace("approvals_given", number(core::approvals_given(drift, SystemClock().wall())));
  out.emplace("approvals_needed", number(drift.approvals_needed));
}

}  // namespace

Value to_json(const core::Drift& drift, Depth depth) {
  Value::Array changes;
  Values values(depth);
  for (const auto& one : drift.changes) {
    if (values.full()) break;
    changes.push_back(change(one, values, depth));
  }
  const std::size_t listed = changes.size();
  Value::Object out{{"id", drift.id},
                    {"kind", drift.resource.kind},
                    {"resource", core::render(drift.resource)},
                    {"class", word(core::render(drift.cls))},
                    {"against", word(core::render(drift.against))},
                    {"policy", word(core::render(drift.action))},
                    {"operation", word(core::render(drift.operation))},
                    {"status", word(core::render(drift.status))},
                    {"changes", std::move(changes)},
                    {"digest", drift.digest},
                    {"opened", time(drift.opened_ns)},
                    {"updated", time(drift.updated_ns)},
                    {"stale_since", time(drift.stale_since_ns.value_or(0))},
                    {"actor", drift.actor},
                    {"reason", drift.reason},
                    {"decided", time(drift.decided_ns.value_or(0))},
                    {"expires", time(drift.expires_ns.value_or(0))},
                    {"claimed_by", drift.claimed_by},
                    {"claimed_until", time(drift.claim_until_ns.value_or(0))}};
  if (drift.approvals_needed > 1) put_approvals(out, drift);
  if (listed < drift.changes.size())
    out.emplace("changes_total", number(static_cast<std::int64_t>(drift.changes.size())));
  return out;
}

Value to_json(const core::DriftRow& row) {
  Value out = to_json(row.drift);
  out.object()->insert_or_assign("backend", row.backend);
  return out;
}

Value to_json(const core::ResourceRow& row, Depth depth) {
  const auto& resource = row.resource;
  Value::Array open;
  for (const auto& drift : resource.open) open.emplace_back(drift.id);
  Values values(depth), other_values(depth);
  Value::Object out{{"backend", row.backend},
                    {"kind", resource.id.kind},
                    {"id", resource.id.id},
                    {"resource", core::render(resource.id)},
                    {"present", flag(resource.observed.has_value())},
                    {"baseline", Value()},
                    {"observed", Value()},
                    {"external_name", resource.observed_external_name},
                    {"origin", resource.origin},
                    {"observed_at", time(resource.observed_ns)},
                    {"unread", some_of(resource.was_unread, other_values)},
                    {"revision", number(resource.revision)},
                    {"open_drifts", std::move(open)}};
  values.add(out, {"baseline", resource.baseline, "observed", resource.observed});
  const OptionalJson none, status = resource.status;
  Value::Object apart;
  other_values.add(apart, {"", none, "status", status});
  out.insert_or_assign("status", apart.at("status"));
  return out;
}

}  // namespace driftd::admin
