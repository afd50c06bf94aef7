// SPDX-License-Identifier: Apache-2.0
// Limits how many resources of a backend are known at a time (budgets.resources). Otherwise anybody who may name
// resources in a system could fill the store and the index with names that come and go. Core thread, while the runner's
// cycle mutex is locked.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/ledger.hpp"

namespace driftd::engine {

struct Admission {
  std::vector<ResourceReading> admitted;          ///< known resources, and new ones within the budget
  std::map<std::string, std::uint64_t> left_out;  ///< number of new resources over the budget, by kind
};

/// Splits readings by the budget. If new resources need room, it first forgets resources that were never accepted and
/// are gone. Fails only with an error of the store.
Task<Result<Admission>> admit(std::shared_ptr<Context> context, Ledger& ledger, std::vector<ResourceReading> fresh);

/// Returns how many resources may still be added.
std::uint64_t remaining_resources(Ledger& ledger);
/// Returns true if there is room, or if there are resources that can be forgotten.
bool can_admit(Ledger& ledger);
/// Returns the coverage reason of a kind whose new resources were left out.
std::string no_room(const Ledger& ledger, const std::string& kind);

}  // namespace driftd::engine
