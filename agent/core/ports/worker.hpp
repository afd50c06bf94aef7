// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "base/clock.hpp"

namespace driftd::core {

/// State of a backend's worker, and counters of its plugin since the plugin file came into use.
struct WorkerStatus {
  std::string state;  ///< starting | running | backoff | parked | in-process | stopped | no plugin, no secret,
                      ///< discovered (there is none)
  /// `killed by signal 11 (Segmentation fault) in refresh`; empty if the worker never ended. In the states `no plugin`
  /// and `no secret`: the reason
  std::string last_exit;
  int pid = 0;
  std::uint64_t restarts = 0;
  std::int64_t rss_bytes = 0;
  std::map<std::string, double> gauges;  ///< the plugin's gauges (host table `metric`): last value by declared name

  std::string file, version;                     ///< the plugin in use
  std::uint64_t crashes = 0;                     ///< in the last ten minutes
  Nanos parked_until_ns = 0;                     ///< 0 if not parked
  std::map<std::string, std::uint64_t> misuses;  ///< violations of the ABI by function: emit, mark, secret …
  std::string last_misuse;
  std::uint64_t denied_secrets = 0;                  ///< calls of secret() for a token that is not this instance's
  std::map<std::string, std::uint64_t> budget_hits;  ///< by budget: rss, cpu, call, records, bytes, files, threads
  std::string last_budget_hit;
  std::string last_failure;  ///< `refresh: connection refused`; empty if the last refresh succeeded or there was none
  std::string jail;  ///< what the worker may no longer do, as it reports it; empty if in-process or not known yet
  std::string secret_fault;     ///< why an older secret of a file or program is still in use; empty if the newest is
  std::string upgrade_refused;  ///< why the current plugin file is not used; empty if it is
};

}  // namespace driftd::core
