// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>

#include "base/result.hpp"

namespace driftd::admin {

/// Returns `conflict` if no socket can be made at this path: an agent answers there, or it is something other than a
/// socket.
/// Returns `invalid` if the path is empty or has more than 107 bytes. A stale socket file passes.
Status check_unix(const std::string& path);

/// Returns a listening Unix socket of that group (empty: unchanged), with mode 0660, or with 0666 if it is `open` to
/// all, in which case the acceptor must check the peer. The socket file of a dead agent is replaced; a living agent is
/// a `conflict`. The caller owns the descriptor.
/// Makes the folder if it is missing. Returns `not_found` for an unknown group, `denied` or `unavailable` with the
/// system's reason otherwise.
Result<int> listen_unix(const std::string& path, const std::string& group, bool open);

/// Returns a listening TCP socket on a loopback address such as `127.0.0.1:7480`, `localhost:0` or `[::1]:7480`. The
/// caller owns the descriptor. An error names the `setting` that the address is from.
/// Returns `invalid` for an address that is not loopback or has no numeric port, `conflict` if the port is taken.
Result<int> listen_loopback(const std::string& address, const std::string& setting);

/// Returns true if a Host header names this machine's loopback. Another name is the sign of DNS rebinding by a web
/// page.
/// Accepts localhost, 127.0.0.0/8 and [::1], with or without a port. Empty: false.
bool is_loopback_host(std::string_view host);

}  // namespace driftd::admin
