// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <string>
#include <vector>

#include "core/backend.hpp"
#include "core/judge/judge.hpp"

namespace driftd::engine {

/// `source`, or `source/namespace`.
std::string render(const core::Registrar& who);

/// The registrars of one backend that its configuration does not name, and which of them a person accepted: the
/// question that the drift of `claim/<backend>` asks (ADR 0015). Core thread only.
class Claims {
 public:
  /// As the store knows it.
  void load(const core::StoredResource& stored);
  /// As somebody apply_decision: who is accepted now.
  void apply_decision(const core::StoredResource& next);
  /// True: it is new, somebody is to be asked. Of one backend 16 are noted: the question stays the same.
  bool add(const core::Registrar& who);
  /// The source listed everything that it says, and of this backend spoke for these. True: a claim is over.
  bool drop_unlisted(const std::string& source, const std::set<core::Registrar>& named);
  bool is_claimant(const core::Registrar& who) const { return claimants_.contains(render(who)); }
  bool accepts(const core::Registrar& who) const { return accepted_.contains(render(who)); }
  /// These names are what the store has of it; false until then.
  void settle(const std::vector<std::string>& asked) { settled_ = asked == names(); }
  bool settled() const { return settled_; }
  std::vector<std::string> names() const { return {claimants_.begin(), claimants_.end()}; }
  std::set<std::string> sources() const;

 private:
  std::set<std::string> claimants_, accepted_;  ///< rendered; `accepted_` is in `claimants_`
  bool settled_ = true;
};

}  // namespace driftd::engine
