// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "driftd/sdk/call.hpp"
#include "terraform/settings.hpp"
#include "terraform/spool.hpp"

namespace driftd::terraform {

/// Number of bytes at the start of a state that hold version, serial and lineage.
inline constexpr std::size_t kBeginning = 64u << 10;

/// Result of a fetch.
struct Fetched {
  bool unchanged = false;        ///< the stamp is still the known one; nothing else is set
  Spool state;                   ///< complete and finished
  std::string stamp;             ///< version mark of the backend: equal stamps mean equal states. Not a secret
  std::int64_t sent_ns = 0;      ///< wall clock when the request was sent
  std::int64_t lock_age_s = -1;  ///< −1: not locked, or not reported
  std::map<std::string, std::string> provenance;  ///< what the backend says of this state: run_id, state_version …
};

/// Result of a health probe.
struct Probe {
  std::string beginning;  ///< first bytes of the state, if they came without extra cost
};

/// A backend that holds one state. Its functions may run concurrently, each with a connection of its own.
class Source {
 public:
  virtual ~Source() = default;
  /// Fetches the current state, unless its stamp is still `known`. Throws UNAVAILABLE (also if there is no state, which
  /// proves nothing about its resources), DENIED with the right, UNAUTHENTICATED, THROTTLED, DEADLINE, CANCELLED,
  /// CORRUPT, BUDGET.
  virtual Fetched fetch(sdk::Call& call, const std::string& known) = 0;
  /// Returns within one second, or throws like fetch().
  virtual Probe probe(sdk::Call& call) = 0;
  /// Blocks until the call is cancelled; calls `changed` once it listens and after each change. Throws like fetch().
  virtual void watch(sdk::Call& call, const std::function<void()>& changed);
};

/// Creates the source that `settings.backend` names without reading anything. Throws INVALID with the name of the
/// setting.
std::unique_ptr<Source> open_source(const Settings& settings);

std::unique_ptr<Source> open_local(const Settings& settings);
std::unique_ptr<Source> open_http(const Settings& settings);
std::unique_ptr<Source> open_s3(const Settings& settings);
std::unique_ptr<Source> open_pg(const Settings& settings);
std::unique_ptr<Source> open_consul(const Settings& settings);
std::unique_ptr<Source> open_kubernetes(const Settings& settings);
std::unique_ptr<Source> open_cloud(const Settings& settings);

/// Throws UNAVAILABLE: there is no state at `what`. A missing state proves nothing about the resources that it
/// described.
[[noreturn]] void no_state(const std::string& what);
/// Minimum time between two requests of a watch, whatever the server or a proxy answers.
inline constexpr std::chrono::seconds kWatchRound{1};

}  // namespace driftd::terraform
