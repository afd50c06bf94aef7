// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <string>

namespace driftd::rpc {

/// Where the agent sends its change log (docs/change-log.md): over a Unix socket, or by TCP with mutual TLS.
struct ChangeLogTarget {
  std::string socket;         ///< path; empty: `address`
  std::string address;        ///< HOST:PORT
  std::string cert, key, ca;  ///< PEM files of `address`, which are followed; without `ca` the system's CAs
  std::chrono::milliseconds timeout{20'000};  ///< of a call: a receiver that hangs is away
  friend bool operator==(const ChangeLogTarget&, const ChangeLogTarget&) = default;
};

/// What `driftd changelog-sidecar` serves.
struct ChangeLogServerSettings {
  std::string socket;                     ///< path; empty: `address`
  std::string address;                    ///< HOST:PORT, with mutual TLS only
  std::string cert, key, client_ca;       ///< PEM files of `address`, which are followed
  std::size_t max_entry_bytes = 4 << 20;  ///< a larger entry is refused
};

}  // namespace driftd::rpc
