// SPDX-License-Identifier: Apache-2.0
// How many resources of a backend are known at a time (budgets.resources): whoever may name resources in a system could
// otherwise fill the store and the index with names that come and go. Core thread, under the AsyncMutex.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/ledger.hpp"

namespace driftd::engine {

struct Admission {
  std::vector<ResourceReading> admitted;          ///< what is known already, and what is new and fits
  std::map<std::string, std::uint64_t> left_out;  ///< how many new ones of a kind do not
};

/// Where new resources need it, first forgets what came and went and nobody accepted. The error is the store's.
Task<Result<Admission>> admit(std::shared_ptr<Context> context, Ledger& ledger, std::vector<ResourceReading> fresh);

/// How many resources may be added.
std::uint64_t remaining_resources(Ledger& ledger);
/// There is room, or there is what may be forgotten.
bool can_admit(Ledger& ledger);
/// The reason that coverage gives of a kind whose new resources were left out.
std::string no_room(const Ledger& ledger);

}  // namespace driftd::engine
