// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "core/judge/rules.hpp"

namespace driftd::engine {

/// The rules of one backend, of which some policy rules hold only for a time. Core thread only.
class TimedRules {
 public:
  /// Replaces all rules, and takes those that hold at `now_ns`. `all` may be null, for a backend that is never judged.
  void replace(std::shared_ptr<const core::Rules> all, Nanos now_ns) {
    all_ = std::move(all);
    held_.reset();
    take(now_ns);
  }
  /// Takes the rules that hold at `now_ns`. Returns true if they are other ones than before.
  bool take(Nanos now_ns) {
    const bool same = held_ && turning(now_ns).empty();
    taken_ns_ = now_ns;
    if (same || !all_) return false;
    held_ = std::make_shared<const core::Rules>(core::rules_at(*all_, now_ns));
    return true;
  }
  /// Returns the policy rules that began (true) or ended between the last take() and `now_ns`.
  std::vector<std::pair<core::PolicyRule, bool>> turning(Nanos now_ns) const {
    std::vector<std::pair<core::PolicyRule, bool>> out;
    if (!all_) return out;
    for (const auto& rule : all_->policy) {
      if (rule.holds(taken_ns_) != rule.holds(now_ns)) out.emplace_back(rule, rule.holds(now_ns));
    }
    return out;
  }
  /// Returns when the next policy rule begins or ends after the last take(); absent if none does.
  std::optional<Nanos> next_turn() const { return all_ ? core::next_turn(*all_, taken_ns_) : std::nullopt; }
  const std::shared_ptr<const core::Rules>& held() const { return held_; }  ///< those that held at the last take()

 private:
  std::shared_ptr<const core::Rules> all_, held_;
  Nanos taken_ns_ = 0;
};

}  // namespace driftd::engine
