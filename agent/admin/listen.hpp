// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>

#include "base/result.hpp"

namespace driftd::admin {

/// `conflict` where no socket can be made: an agent answers there, or something else has that name.
Status check_unix(const std::string& path);

/// A listening Unix socket of that group (empty: unchanged), with mode 0660, or 0666 when it is `open` to all: then
/// whoever accepts must look at the peer. A stale file of a dead agent is replaced, a living one is a `conflict`. The
/// caller owns the descriptor.
Result<int> listen_unix(const std::string& path, const std::string& group, bool open);

/// A listening TCP socket on a loopback address such as `127.0.0.1:7480`, `localhost:0`, `[::1]:7480`. The caller owns
/// the descriptor.
Result<int> listen_loopback(const std::string& address);

/// Whether a Host header names this machine's loopback (another name is a page of somewhere else: DNS rebinding).
bool is_loopback_host(std::string_view host);

}  // namespace driftd::admin
