// SPDX-License-Identifier: Apache-2.0
// What the agent refuses to send to a plugin, and the worker to pass on: the plugin is promised that it never gets one.
#pragma once

#include "base/result.hpp"
#include "ipc/ext_messages.hpp"

namespace driftd::ipc {

/// Returns `invalid` if the request breaks a rule of driftd/ext/apply.h: no change or too many, a path twice, the path
/// that stands for the resource itself, a key that is missing or too long, too many bytes, a value that is not JSON, or
/// one that is or holds a digest or `[REDACTED]`, of which nobody knows what it was.
Status check(const ApplyCall& call);

}  // namespace driftd::ipc
