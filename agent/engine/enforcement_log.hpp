// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/enforce/operation.hpp"
#include "core/judge/judge.hpp"

namespace driftd::engine {

/// The operations and stops of one backend as they are stored, for the brakes and for recognising own writes. Whoever
/// commits them hands them to adopt(). Core thread only.
class EnforcementLog {
 public:
  void load(core::EnforcementRecord record);
  void adopt(const std::vector<core::Enforcement>& operations, const std::vector<core::EnforcementStop>& stops);
  /// A clock that was ahead and was set back has left times that are still to come. They count as `now`, the moment at
  /// which that is noticed, so that no brake waits longer for them than for what is done now.
  void bound_times(Nanos now);
  /// Forgets ended operations that were planned before this time, but those without a known end.
  void forget_before(Nanos planned_ns);

  const std::vector<core::Enforcement>& operations() const { return record_.operations; }
  const std::vector<core::EnforcementStop>& stops() const { return record_.stops; }
  /// Returns the open operation on a resource; nullptr if there is none. Valid until the next change.
  const core::Enforcement* find_open(const core::ResourceId& resource) const;
  const core::Enforcement* find(const std::string& id) const;
  std::vector<core::Enforcement> open() const;
  /// How many operations ended since the start, by state.
  const std::map<std::string, std::uint64_t>& ended() const { return ended_; }
  /// Returns what a reading of the resource may show of an open operation that may have reached the system.
  std::optional<core::OwnWrite> own_write(const core::ResourceId& resource) const;

 private:
  core::EnforcementRecord record_;
  std::map<std::string, std::uint64_t> ended_;
};

}  // namespace driftd::engine
