// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "core/ports/store.hpp"

namespace driftd::delivery {

/// Returns true if the store cut this answer because of its size, so that it says nothing about later events.
bool cut_by_size(const std::vector<core::StoredEvent>& answer);

/// Returns the seqs of `asked` that the answer covers, in the same order. A covered event that is missing from the
/// answer has left the store; nothing is known about the others.
std::vector<std::int64_t> covered_seqs(std::vector<std::int64_t> asked, const std::vector<core::StoredEvent>& answer);

}  // namespace driftd::delivery
