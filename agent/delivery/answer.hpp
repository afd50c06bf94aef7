// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "core/ports/store.hpp"

namespace driftd::delivery {

/// Returns true if the store ended this answer by its bytes: it did not look for what was asked for behind it.
bool cut_by_size(const std::vector<core::StoredEvent>& answer);

/// Of the events that were asked for those that the store looked for, in the same order. What is not in the answer of
/// them has left the store; of the others nothing is known.
std::vector<std::int64_t> covered_seqs(std::vector<std::int64_t> asked, const std::vector<core::StoredEvent>& answer);

}  // namespace driftd::delivery
