// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/judge.hpp"
#include "core/ports/store.hpp"

namespace driftd::engine {

/// One resource and what was seen of it.
struct Sighted {
  core::ResourceId id;
  core::Sighting sighting;
  std::optional<std::string> upgraded{};  ///< the stored baseline in the form of the current schema revision
};

/// What else a commit carries beside judged resources.
struct Extras {
  std::optional<std::string> cursor, watch_cursor;
  std::vector<std::string> established;
  std::optional<core::BackendRow> row;
  std::vector<core::EventDraft> events;
  std::vector<core::DeclarationWrite> declarations;  ///< of this source; bodies as they came
  std::vector<core::AuditEntry> audit;
  bool empty() const {
    return !cursor && !watch_cursor && established.empty() && !row && events.empty() && declarations.empty();
  }
};

}  // namespace driftd::engine
