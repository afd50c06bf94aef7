// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/clock.hpp"
#include "store/sqlite.hpp"

namespace driftd::store {

/// Marks a link as used, in the transaction of the decision. Returns `denied` if it was used before, has expired or is
/// not known; then nothing of the decision is written.
Status use_link(Connection& db, const std::string& hash, Nanos now_ns);

}  // namespace driftd::store
