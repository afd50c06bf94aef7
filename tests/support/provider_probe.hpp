// SPDX-License-Identifier: Apache-2.0
// A minimal host for tests of providers: it loads a provider .so into the test and collects what the provider sends.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "driftd/sdk/extensions.hpp"

struct driftd_watch_table;

namespace driftd::test {

/// What the provider sent during one call.
struct Collected {
  driftd_status status = DRIFTD_INTERNAL;
  std::vector<sdk::Record> records;
  std::map<std::string, std::uint64_t> complete;  ///< COMPLETE marks of the instance's own backend: kind → count
  /// COMPLETE marks of other backends: (backend, kind) → count.
  std::map<std::pair<std::string, std::string>, std::uint64_t> complete_of;
  std::vector<sdk::Backend> backends;  ///< discovered backends
  bool discovery_complete = false;
  std::string cursor;  ///< the cursor of the last CHECKPOINT or BOOKMARK
  int marks = 0;
  std::vector<sdk::Diagnostic> diagnostics;
  bool unchanged = false;
  std::int64_t next_ms = 0;
  sdk::Health health;

  const sdk::Record* find(const std::string& kind, const std::string& id) const;
  nlohmann::json body(const std::string& kind, const std::string& id) const;  ///< null if absent
  const sdk::Diagnostic* diagnostic(driftd_status code) const;  ///< the first one with this code; null if absent
};

/// What an apply came to.
struct AppliedCall {
  driftd_status status = DRIFTD_INTERNAL;
  int outcomes = 0;      ///< how many were pushed
  sdk::Applied outcome;  ///< the last one
  std::vector<sdk::Diagnostic> diagnostics;
  std::string reason() const;  ///< the outcome's text, or that of the first diagnostic
};

/// One opened instance. Calls may run on several threads.
class ProviderProbe {
 public:
  /// `so` is a path in the build folder, like "providers/redis.so". `secrets`: token → bytes. Throws if open fails.
  ProviderProbe(const std::string& so, const nlohmann::json& settings, std::map<std::string, std::string> secrets = {});
  ~ProviderProbe();
  ProviderProbe(const ProviderProbe&) = delete;
  ProviderProbe& operator=(const ProviderProbe&) = delete;

  Collected refresh(const std::string& cursor = {}, std::chrono::milliseconds deadline = std::chrono::seconds(20));
  Collected refresh_kind(const std::string& kind);  ///< a full refresh of this kind alone
  /// Runs `work` from now on before each request of a refresh or an apply (when the provider asks for a permit), on the
  /// thread of that call. A test can so change the system between two requests.
  void before_each_request(std::function<void()> work) { before_request_ = std::move(work); }
  /// Refreshes until one is OK and returns that. Throws if none is. For a system that answers, when the settings have
  /// such short time-outs that a single refresh may fail on a busy machine.
  Collected refresh_ok();
  Collected read(const std::vector<sdk::Identity>& ids);
  /// Asks for the health, with the deadline of one second that the ABI sets. A slow machine may make a call late, so it
  /// is repeated up to five times, until it took less than `max_time` and a report other than UP came at once. Returns
  /// the last report that was in time. Throws if none was.
  Collected health(std::chrono::milliseconds max_time = std::chrono::milliseconds(1500));
  Collected discover();
  AppliedCall apply(const sdk::Apply& request);  ///< throws if the provider has no driftd.apply
  /// Watches until `enough` returns true for what was collected so far (it is called after each mark), or until
  /// `max_time` is over. `watching` runs every 20 ms after the first mark.
  Collected watch(const std::string& cursor, const std::function<bool(const Collected&)>& enough,
                  std::chrono::milliseconds max_time, const std::function<void()>& watching = {});
  std::string schema(const std::string& what) const;
  nlohmann::json describe() const;

 private:
  Collected ask_health();

  const driftd_provider_table* table_ = nullptr;
  driftd_instance instance_ = nullptr;
  std::map<std::string, std::string> secrets_;
  std::function<void()> before_request_;
};

}  // namespace driftd::test
