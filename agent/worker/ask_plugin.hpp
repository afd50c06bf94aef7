// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ipc/messages.hpp"

namespace driftd::worker {

struct Library;

/// Calls describe and schema of a plugin. `invalid` names the document that is missing or that changes between two
/// calls.
Result<ipc::LoadAnswer> ask_plugin(const Library& library);

}  // namespace driftd::worker
