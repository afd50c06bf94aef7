// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ipc/messages.hpp"

namespace driftd::worker {

struct Library;

/// Calls describe and schema of a plugin, each twice: for "settings" and, of a provider, for each kind that describe
/// names. Returns `invalid` with the document that is missing, longer than kMaxDocument, or differs between two calls.
/// Of their content only the kinds are parsed; ipc::parse_info does the rest. An exception of the plugin may pass
/// through.
Result<ipc::LoadAnswer> ask_plugin(const Library& library);

}  // namespace driftd::worker
