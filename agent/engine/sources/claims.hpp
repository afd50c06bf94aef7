// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <string>
#include <vector>

#include "core/backend.hpp"
#include "core/judge/judge.hpp"

namespace driftd::engine {

/// Renders `source` or `source/namespace`.
std::string render(const core::Registrar& who);

/// Registrars that claim a backend whose configuration does not name them, and which of them a person accepted. This is
/// the question of the drift `claim/<backend>` (ADR 0015). Core thread only.
class Claims {
 public:
  /// Loads claimants and acceptances from the stored drift.
  void load(const core::StoredResource& stored);
  /// Replaces the accepted claimants by those of a decision.
  void apply_decision(const core::StoredResource& next);
  /// Adds a claimant. Returns true if it is new, so that somebody must be asked. At most 16 are noted for a backend;
  /// further ones do not change the question.
  bool add(const core::Registrar& who);
  /// Drops the claimants of a source that are not in its complete list `named`. Returns true if any was dropped.
  bool drop_unlisted(const std::string& source, const std::set<core::Registrar>& named);
  bool is_claimant(const core::Registrar& who) const { return claimants_.contains(render(who)); }
  bool accepts(const core::Registrar& who) const { return accepted_.contains(render(who)); }
  /// Call it when these names are stored. settled() is false while other names are to be stored.
  void settle(const std::vector<std::string>& asked) { settled_ = asked == names(); }
  bool settled() const { return settled_; }
  /// Returns all claimants, sorted.
  std::vector<std::string> names() const { return {claimants_.begin(), claimants_.end()}; }
  std::set<std::string> sources() const;  ///< of all claimants

 private:
  std::set<std::string> claimants_, accepted_;  ///< rendered; `accepted_` is a subset of `claimants_`
  bool settled_ = true;
};

}  // namespace driftd::engine
