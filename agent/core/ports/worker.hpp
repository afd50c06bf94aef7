// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "base/clock.hpp"

namespace driftd::core {

/// How a backend's worker fares now, and what its plugin did since the worker's plugin file was taken up.
struct WorkerStatus {
  std::string state;  ///< starting | running | backoff | parked | in-process | stopped | no plugin, no secret,
                      ///< discovered (there is none)
  /// `killed by signal 11 (Segmentation fault) in refresh`; empty: never. no plugin, no secret: why
  std::string last_exit;
  int pid = 0;
  std::uint64_t restarts = 0;
  std::int64_t rss_bytes = 0;
  std::map<std::string, double> gauges;  ///< of the plugin (host table `metric`), last value by declared name

  std::string file, version;                     ///< the plugin that serves
  std::uint64_t crashes = 0;                     ///< in the last ten minutes
  Nanos parked_until_ns = 0;                     ///< 0: not parked
  std::map<std::string, std::uint64_t> misuses;  ///< broken rules of the ABI by function: emit, mark, secret …
  std::string last_misuse;
  std::uint64_t denied_secrets = 0;                  ///< secret() for a token that is not this instance's
  std::map<std::string, std::uint64_t> budget_hits;  ///< by budget: rss, cpu, call, records, bytes, files, threads
  std::string last_budget_hit;
  std::string last_failure;  ///< `refresh: connection refused`; empty: the last refresh answered OK, or there was none
  std::string jail;          ///< what the worker gave up, as it says; empty: in-process, or not known yet
  std::string secret_fault;  ///< why an older secret of a file or program stays in use; empty: the newest is
  std::string upgrade_refused;  ///< why the file that lies there now is not taken up; empty: it is
};

}  // namespace driftd::core
