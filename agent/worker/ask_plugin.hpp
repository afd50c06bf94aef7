// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ipc/messages.hpp"

namespace driftd::worker {

struct Library;

/// Calls describe and schema of a plugin. Returns `invalid` with the document that is missing or differs between two
/// calls.
Result<ipc::LoadAnswer> ask_plugin(const Library& library);

}  // namespace driftd::worker
