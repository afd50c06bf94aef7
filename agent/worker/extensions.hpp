// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <driftd/ext/apply.h>
#include <driftd/ext/discover.h>
#include <driftd/ext/upgrade.h>
#include <driftd/ext/watch.h>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "core/extension.hpp"

namespace driftd::worker {

struct Library;

/// The extension tables of one plugin. A slot that the plugin does not have is null, which means `unsupported`.
struct Extensions {
  driftd_watch_table watch{};
  driftd_discover_table discover{};
  driftd_upgrade_table upgrade{};
  driftd_apply_table apply{};
  std::vector<core::Extension> offered;  ///< the adopted ones, sorted by name
};

/// Adopts every extension that this host knows and the plugin offers. Returns `invalid` for half an extension (listed
/// by describe or answered by query, not both) and names the missing half, also for a table that is too short or has a
/// NULL slot; `internal` if an exception of the plugin crossed the ABI.
Result<Extensions> adopt_extensions(const Library& library);

}  // namespace driftd::worker
