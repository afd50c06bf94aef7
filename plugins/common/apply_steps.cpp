// SPDX-License-Identifier: Apache-2.0
#include "common/apply_steps.hpp"

#include <algorithm>

#include "common/attribute_path.hpp"

namespace driftd::common {
namespace {

using nlohmann::json;

constexpr std::size_t kMaxKeys = 1024;

/// Returns true if the system may have run the command although it failed.
bool may_have_run(const sdk::Failure& failure) {
  return failure.code == DRIFTD_UNAVAILABLE || failure.code == DRIFTD_DEADLINE || failure.code == DRIFTD_CANCELLED ||
         failure.code == DRIFTD_INTERNAL;
}

std::string reason_of(const sdk::Failure& failure) {
  std::string out = failure.what();
  if (failure.code == DRIFTD_DENIED && !failure.right.empty()) out += "; grant " + failure.right;
  return out;
}

/// Takes the steps before `end` back, the last one first. Returns the paths that stayed.
std::vector<std::string> take_back(const std::vector<Step>& steps, std::size_t end, std::string& text) {
  std::vector<std::string> left;
  for (std::size_t i = end; i-- > 0;) {
    if (!steps[i].take_back) continue;
    try {
      steps[i].take_back();
    } catch (const sdk::Failure& failure) {
      text += "; " + steps[i].undo + " failed: " + reason_of(failure);
      left.insert(left.end(), steps[i].paths.begin(), steps[i].paths.end());
    }
  }
  return left;
}

sdk::Applied failed_at(const std::vector<Step>& steps, std::size_t at, const sdk::Failure& why) {
  sdk::Applied out = refused(steps[at].command + ": " + reason_of(why));
  const std::size_t end = may_have_run(why) ? at + 1 : at;
  out.left = take_back(steps, end, out.text);
  out.changed = !out.left.empty();
  const bool ran = std::any_of(steps.begin(), steps.begin() + static_cast<std::ptrdiff_t>(end),
                               [](const Step& step) { return static_cast<bool>(step.take_back); });
  out.text += out.changed ? "; what could not be taken back stayed changed"
              : ran       ? "; what was changed before was taken back"
                          : "; nothing was changed";
  for (std::size_t i = 0; i < end; ++i) out.commands.push_back(steps[i].command);
  return out;
}

/// Absent and null are one.
const json& found_at(const json& body, const std::string& path) {
  static const json kNull;
  const json* at = find_at(body, parse_attribute_path(path));
  return at == nullptr ? kNull : *at;
}

bool same(const json& a, const json& b, bool unordered) {
  if (a.is_array() && b.is_array() && unordered) {
    auto left = a.get<std::vector<json>>(), right = b.get<std::vector<json>>();
    std::sort(left.begin(), left.end());
    std::sort(right.begin(), right.end());
    return left == right;
  }
  if (a == b) return true;
  const bool scalars = a.is_primitive() && b.is_primitive() && !a.is_null() && !b.is_null();
  return scalars && scalar_text(a, {}) == scalar_text(b, {});
}

std::string change_of(const sdk::Apply& request) {
  json out = {request.id.kind, request.id.id, request.id.backend};
  for (const auto& change : request.changes) out.push_back({change.path, change.new_value});
  return out.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace

sdk::Applied refused(const std::string& text) {
  sdk::Applied out;
  out.outcome = DRIFTD_APPLY_FAILED;
  out.text = text;
  return out;
}

sdk::Applied show(const std::vector<Step>& steps) {
  sdk::Applied out;
  for (const auto& step : steps) out.commands.push_back(step.command);
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    if (!step->seals && !step->undo.empty()) out.undo.push_back(step->undo);
  }
  for (const auto& step : steps) {
    if (step.seals) out.undo.push_back(step.command);
  }
  return out;
}

sdk::Applied carry_out(const std::vector<Step>& steps, const std::function<bool()>& cancelled) {
  for (std::size_t i = 0; i < steps.size(); ++i) {
    try {
      if (cancelled()) throw sdk::Failure(DRIFTD_CANCELLED, "the call was cancelled");
      steps[i].run();
    } catch (const sdk::Failure& why) {
      if (i == 0 && (may_have_run(why) || why.code == DRIFTD_NOT_FOUND)) throw;
      return failed_at(steps, i, why);
    }
  }
  sdk::Applied out = show(steps);
  out.changed = true;
  return out;
}

std::optional<std::vector<std::string>> member_names(std::string_view path) {
  std::vector<std::string> out;
  try {
    for (auto& step : parse_attribute_path(path)) {
      if (step.kind != PathStep::Kind::member) return std::nullopt;
      out.push_back(std::move(step.name));
    }
  } catch (const sdk::Failure&) {
    return std::nullopt;
  }
  return out;
}

std::string scalar_text(const json& value, const std::string& path) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number() || value.is_boolean()) return value.dump();
  throw CannotSet(path + ": expected a text, a number or a boolean, found " + std::string(value.type_name()));
}

std::optional<sdk::Applied> compare_judged(const sdk::Record& now, const sdk::Apply& request,
                                           const std::function<bool(const std::string& path)>& unordered) {
  const json body = json::parse(now.body, nullptr, false);
  const std::string name = request.id.kind + "/" + request.id.id;
  const auto all = [&](std::string sdk::Change::*side) {
    return std::find_if_not(request.changes.begin(), request.changes.end(), [&](const sdk::Change& change) {
      return same(found_at(body, change.path), parse_change_value(change.*side), unordered(change.path));
    });
  };
  if (all(&sdk::Change::new_value) == request.changes.end()) {
    sdk::Applied out;
    out.version = now.version;
    out.text = "every value is there already";
    return out;
  }
  if (!request.expected_version.empty() && request.expected_version != now.version) {
    throw sdk::Failure(DRIFTD_CONFLICT, name + " was judged at version " + request.expected_version +
                                            " and is at version " + now.version + " now; nothing was done");
  }
  const auto other = all(&sdk::Change::old_value);
  if (other == request.changes.end()) return std::nullopt;
  throw sdk::Failure(DRIFTD_CONFLICT, name + ": " + other->path + " changed since it was judged; nothing was done",
                     request.id.kind);
}

std::optional<sdk::Applied> AppliedRequests::find(const sdk::Apply& request) const {
  const auto found = entries_.find(request.key);
  if (found == entries_.end()) return std::nullopt;
  if (found->second.change != change_of(request)) {
    throw sdk::Failure(DRIFTD_INVALID, "the idempotency key was used for another change; expected a new one");
  }
  sdk::Applied out = found->second.outcome;
  out.changed = false;
  if (out.outcome == DRIFTD_APPLY_SUCCESS) out.text = "done before under the same key";
  return out;
}

void AppliedRequests::remember(const sdk::Apply& request, const sdk::Applied& outcome) {
  if (!entries_.insert_or_assign(request.key, Entry{change_of(request), outcome}).second) return;
  order_.push_back(request.key);
  if (order_.size() <= kMaxKeys) return;
  entries_.erase(order_.front());
  order_.pop_front();
}

}  // namespace driftd::common
