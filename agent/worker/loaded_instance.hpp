// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>

#include "base/rate_limiter.hpp"
#include "core/disclosure.hpp"
#include "ipc/text.hpp"
#include "worker/extensions.hpp"
#include "worker/library.hpp"
#include "worker/sent_records.hpp"

namespace driftd::worker {

/// One opened instance of a plugin as the host knows it. Owned by a ProviderHost, which fills it while it loads and
/// opens; immutable after open, except for the counters, so the threads of all calls read it.
struct LoadedInstance {
  const Library* library = nullptr;                ///< null until loaded; lives as long as the process
  std::shared_ptr<const core::ProviderInfo> info;  ///< what the plugin says of itself
  Extensions extensions;
  std::set<std::string> metrics;  ///< names that describe declares
  ipc::Open open;                 ///< settings, secrets and budgets, as the agent sent them
  core::RedactionKey key;         ///< with which secrets in records become digests
  ipc::Scrubber scrubber;         ///< of the secrets in `open`
  core::Disclosure disclosure;    ///< which values may be shown
  SentRecords sent;               ///< by refreshes

  /// Counts a broken rule of the ABI, which the next result reports; `what` is `function: what it did`. [any thread]
  void misuse(const std::string& what);
  void deny_secret();  ///< counts as a misuse and separately
  struct Misuses {
    std::uint64_t count = 0, denied_secrets = 0;       ///< all; those of secret() with a foreign token
    std::string first;                                 ///< text of the first of them
    std::map<std::string, std::uint64_t> by_function;  ///< function of the ABI → number
  };
  Misuses drain_misuses();  ///< returns what was counted since the last time. [any thread]
  /// Limits the log lines of this instance: 20 a second, bursts of 100. Returns nullopt if the line must be dropped,
  /// else how many were dropped before it. [any]
  std::optional<std::uint64_t> may_log();
  bool may_send_metric();  ///< 500 a second, bursts of 10,000; the agent accepts more. [any]

 private:
  std::mutex mutex_;
  Misuses misuses_;  ///< guarded by mutex_, as all below
  RateLimiter logs_{std::chrono::milliseconds(50), 100}, metrics_{std::chrono::milliseconds(2), 10'000};
  std::uint64_t log_dropped_ = 0;  ///< lines since the last one that was sent
};

}  // namespace driftd::worker
