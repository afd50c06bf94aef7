// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "core/ports/change_log.hpp"
#include "driftd/changelog/v1/changelog.pb.h"

namespace driftd::rpc {

/// Returns the entry on the wire (docs/change-log.md). The agent and its cluster are the caller's.
changelog::v1::ChangeLogEntry make_entry(const core::ChangeEntry& entry);

}  // namespace driftd::rpc
