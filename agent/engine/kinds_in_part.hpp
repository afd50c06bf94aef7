// SPDX-License-Identifier: Apache-2.0
// Kinds that have no baseline, because their first list is not whole and will not become so by itself. What was read of
// them is judged all the same (semantics 6, ADR 0019). The backend's row notes them. Pure; any thread.
#pragma once

#include <cstdint>
#include <string>

#include "core/ports/store.hpp"

namespace driftd::engine {

/// Why a kind without a baseline is judged in part.
enum class InPart : std::uint8_t {
  no,           ///< it is not: it has a baseline, or was not listed yet
  over_budget,  ///< its list was complete, but larger than the budget
  withheld,     ///< the system denied a part of its list, or cannot serve it
};

/// The last coverage reason of an incomplete kind that is judged in part.
inline constexpr const char* kInPartReason =
    "what was read of it is compared; until all of it is listed, what comes in is taken as it is, because it may have "
    "been there before, and only a watch sees what goes";

InPart in_part(const core::BackendRow& row, const std::string& kind);
/// Notes it in the row. `no` removes the note.
void note_in_part(core::BackendRow& row, const std::string& kind, InPart why);

}  // namespace driftd::engine
