// SPDX-License-Identifier: Apache-2.0
// A minimal host: loads a provider .so into the test and collects what it pushes. For provider tests; the
// real host has its own.
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

/// What one call pushed.
struct Collected {
  driftd_status status = DRIFTD_INTERNAL;
  std::vector<sdk::Record> records;
  std::map<std::string, std::uint64_t> complete;  ///< kind → count, of the instance's own backend
  std::map<std::pair<std::string, std::string>, std::uint64_t> complete_of;  ///< (backend, kind) → count, of others
  std::vector<sdk::Backend> backends;                                        ///< discovered
  bool discovery_complete = false;
  std::string cursor;  ///< of the last CHECKPOINT or BOOKMARK
  int marks = 0;
  std::vector<sdk::Diagnostic> diagnostics;
  bool unchanged = false;
  std::int64_t next_ms = 0;
  sdk::Health health;

  const sdk::Record* find(const std::string& kind, const std::string& id) const;
  nlohmann::json body(const std::string& kind, const std::string& id) const;  ///< null when absent
  const sdk::Diagnostic* diagnostic(driftd_status code) const;
};

/// One opened instance. Calls may run on several threads.
class ProviderProbe {
 public:
  /// `so` like "providers/redis.so" under the build folder. `secrets`: token → bytes. Throws when it cannot be opened.
  ProviderProbe(const std::string& so, const nlohmann::json& settings, std::map<std::string, std::string> secrets = {});
  ~ProviderProbe();
  ProviderProbe(const ProviderProbe&) = delete;
  ProviderProbe& operator=(const ProviderProbe&) = delete;

  Collected refresh(const std::string& cursor = {}, std::chrono::milliseconds most = std::chrono::seconds(20));
  /// `work` runs in each refresh from now on, on its thread, whenever a permit for a request is asked for: what changes
  /// between two requests of one refresh.
  void before_each_request(std::function<void()> work) { before_request_ = std::move(work); }
  /// The first that is OK, of a system that is there: for settings whose time-outs are made for when it is not. Else
  /// throws.
  Collected refresh_ok();
  Collected read(const std::vector<sdk::Identity>& ids);
  /// With the second that the ABI gives it; asked up to five times, for a machine that stands still spoils one: until
  /// it took less than `most`, and what is not up was said at once. Throws when none took less.
  Collected health(std::chrono::milliseconds most = std::chrono::milliseconds(1500));
  Collected discover();
  /// Watches until `enough` says so of what was collected so far (asked after each mark) or `most` has passed. From the
  /// first mark on `watching` runs every 20 ms.
  Collected watch(const std::string& cursor, const std::function<bool(const Collected&)>& enough,
                  std::chrono::milliseconds most, const std::function<void()>& watching = {});
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
