// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/judge/judge.hpp"
#include "engine/index.hpp"

namespace driftd::engine {

/// What the last reading of each resource of a backend could not read, for explanations. It is not stored, so each
/// process finds it out again, and it is bounded. Core thread only.
class UnreadNotes {
 public:
  struct Paths {
    std::vector<core::Unread> paths;
    std::string gap;  ///< why the paths are not known here; then an attribute that is absent may be unread
  };
  /// `seen` is the record that was judged; nullptr if the row has another cause.
  void keep(const core::StoredResource& next, const core::Observation* seen);
  /// `entry` is that of the index, or nullptr.
  Paths of(const core::ResourceId& id, const Index::Entry* entry) const;

 private:
  std::map<core::ResourceId, std::vector<core::Unread>> unread_;
  std::size_t paths_ = 0;  ///< in `unread_`
};

}  // namespace driftd::engine
