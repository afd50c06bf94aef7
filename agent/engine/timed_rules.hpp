// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <charconv>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/judge/rules.hpp"

namespace driftd::engine {

/// Returns true if a rule holds only for a time.
inline bool is_timed(const core::Rules* rules) {
  return rules != nullptr && std::any_of(rules->policy.begin(), rules->policy.end(),
                                         [](const core::PolicyRule& rule) { return rule.from_ns || rule.until_ns; });
}

/// Note of a backend's row: when its timed rules were taken last, so that the next process finds what turned since.
inline constexpr const char* kRulesNote = "rules_at";
inline Nanos rules_time(const std::map<std::string, std::string>& notes, Nanos otherwise) {
  const auto found = notes.find(kRulesNote);
  if (found == notes.end()) return otherwise;
  Nanos out = otherwise;
  std::from_chars(found->second.data(), found->second.data() + found->second.size(), out);
  return out;
}
inline void note_rules_time(std::map<std::string, std::string>& notes, const core::Rules* rules, Nanos taken_ns) {
  if (is_timed(rules))
    notes[kRulesNote] = std::to_string(taken_ns);
  else
    notes.erase(kRulesNote);
}

/// The rules of one backend, of which some policy rules hold only for a time. Core thread only.
class TimedRules {
 public:
  /// Replaces all rules, and takes those that hold at `now_ns`. `all` may be null, for a backend that is never judged.
  void replace(std::shared_ptr<const core::Rules> all, Nanos now_ns) {
    all_ = std::move(all);
    held_.reset();
    ahead_.reset();
    take(now_ns);
  }
  /// Takes the rules that hold at `now_ns`. Returns true if they are other ones than before.
  bool take(Nanos now_ns) {
    const bool stays = held_ && same(taken_ns_, now_ns);
    taken_ns_ = now_ns;
    if (stays || !all_) return false;
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
  /// Returns those that hold at `now_ns`: a rule ends at its moment, also if the next take() comes later.
  std::shared_ptr<const core::Rules> at(Nanos now_ns) const {
    if (same(taken_ns_, now_ns)) return held_;
    if (!ahead_ || !same(ahead_ns_, now_ns)) {
      ahead_ = std::make_shared<const core::Rules>(core::rules_at(*all_, now_ns));
      ahead_ns_ = now_ns;
    }
    return ahead_;
  }
  const core::Rules* all() const { return all_.get(); }

 private:
  bool same(Nanos one_ns, Nanos other_ns) const {
    return !all_ || std::none_of(all_->policy.begin(), all_->policy.end(), [&](const core::PolicyRule& rule) {
      return rule.holds(one_ns) != rule.holds(other_ns);
    });
  }

  std::shared_ptr<const core::Rules> all_, held_;
  mutable std::shared_ptr<const core::Rules> ahead_;  ///< what at() gave last behind a turn
  Nanos taken_ns_ = 0;
  mutable Nanos ahead_ns_ = 0;
};

}  // namespace driftd::engine
