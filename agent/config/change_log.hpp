// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "grpc/change_log_settings.hpp"

namespace driftd::config {

/// The section `change_log` of the configuration, and what `--enable-change-logs` adds to it (docs/change-log.md).
struct ChangeLog {
  static constexpr const char* kSocket = "/var/run/change-logs/change-logs.sock";
  std::vector<std::string> providers;  ///< globs of the ids of providers that have one; empty: it is off
  std::vector<std::string> enabled;    ///< those of `providers` that the command line added
  rpc::ChangeLogTarget target;
  std::int64_t max_backlog_bytes = 1ll << 30;  ///< above it the oldest waiting entries are given up
  bool on() const { return !providers.empty(); }
  bool logs(const std::string& provider) const;
  friend bool operator==(const ChangeLog&, const ChangeLog&) = default;
};

}  // namespace driftd::config
