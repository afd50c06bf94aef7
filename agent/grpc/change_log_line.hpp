// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.hpp"
#include "driftd/changelog/v1/changelog.pb.h"

namespace driftd::rpc {

/// Returns the entry as one JSON object without a newline (docs/change-log.md). Returns `invalid` if it has no id, or
/// if a state is not a JSON object.
Result<std::string> render_line(const changelog::v1::ChangeLogEntry& entry);

}  // namespace driftd::rpc
