// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <driftd/provider.h>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace driftd::worker {

using EntryFunction = driftd_status(const driftd_host_table*, const driftd_offer*, driftd_accept*);

/// A function table of ours: `size`, `reserved`, then function pointers of one size. What the peer does not have stays
/// as it is in `into`.
struct OwnTable {
  void* into = nullptr;
  std::size_t size = 0;            ///< sizeof of ours
  std::size_t first_size = 0;      ///< sizeof when it was released: every peer has this much
  std::vector<const char*> slots;  ///< names, in order
};

/// Copies the peer's table over ours. `invalid` when it is smaller than at its release or a slot inside its size is
/// NULL; the text starts with `what`.
Status adopt_table(const OwnTable& own, const void* peer, const std::string& what);

/// A full table in which every function answers UNSUPPORTED.
driftd_provider_table unsupported_table();

/// Agrees with a plugin on a minor. `unsupported` names both sides' numbers, or the plugin's own refusal; `invalid` a
/// table that cannot be used. May let an exception of the plugin through.
Result<driftd_provider_table> negotiate(const std::string& file, EntryFunction* entry, bool in_process);

}  // namespace driftd::worker
