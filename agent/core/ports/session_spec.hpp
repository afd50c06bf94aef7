// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/redact_rule.hpp"
#include "core/redaction_key.hpp"

namespace driftd::core {

/// Limits of a backend's worker and of what its provider may send.
struct Budgets {
  std::int64_t rss_bytes = 512ll << 20;
  std::chrono::milliseconds call{60'000};  ///< wall time of a refresh, unless the request has a shorter deadline
  std::uint64_t records = 1'000'000, bytes = 1ull << 30;  ///< per refresh
  std::uint64_t resources = 1'000'000;  ///< resources of a backend at a time, including those deleted recently
  std::chrono::milliseconds cpu{0};     ///< processor time of one call other than watch; 0: limited by `call` only
  int files = 1024, threads = 512;      ///< of the worker: file descriptors and threads, including the host's own few
};

/// What SessionFactory::open() needs to know of a backend.
struct SessionSpec {
  std::string backend;                         ///< its name; `sink/NAME` for the sink of a plugin
  std::string sink;                            ///< NAME of the sink if `provider` is a sink plugin; empty: a backend
  std::string provider;                        ///< plugin id or backend type, as found by the library scan
  std::string settings_json;                   ///< validated against the settings schema; sensitive values are tokens
  std::map<std::string, std::string> secrets;  ///< token → bytes
  std::vector<RedactRule> redact;              ///< the config's rules, in order
  enum class Isolation { process, in_process } isolation = Isolation::process;
  Budgets budgets;
  bool wait_for_plugin = false;  ///< open() succeeds without a plugin file; the session starts once there is one
  RedactionKey worker_key;
  std::uint64_t digest_seed = 0;
};

}  // namespace driftd::core
