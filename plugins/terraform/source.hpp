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

/// Bytes of a state that tell its version, serial and lineage.
inline constexpr std::size_t kBeginning = 64u << 10;

/// What a backend answered when it was asked for the state.
struct Fetched {
  bool unchanged = false;  ///< its stamp still is the one that was known; nothing else is filled in
  Spool state;             ///< whole and finished
  std::string stamp;       ///< what the backend tells this version by: equal stamps, equal states. No secret
  std::int64_t sent_ns = 0;
  std::int64_t lock_age_s = -1;  ///< −1: not locked, or the backend does not tell
  std::map<std::string, std::string> provenance;
};

/// What health learns.
struct Probe {
  std::string beginning;  ///< first bytes of the state, where they came at no cost
};

/// A backend that holds one state. Functions may run at once on several threads, each with a connection of its own.
class Source {
 public:
  virtual ~Source() = default;
  /// The state as it is now, unless its stamp still is `known`. Throws sdk::Failure: UNAVAILABLE (also: there is no
  /// state; nothing follows from that), DENIED with the right, UNAUTHENTICATED, THROTTLED, DEADLINE, CANCELLED,
  /// CORRUPT, BUDGET.
  virtual Fetched fetch(sdk::Call& call, const std::string& known) = 0;
  /// Answers within a second, or throws as fetch.
  virtual Probe probe(sdk::Call& call) = 0;
  /// Blocks until the call is cancelled; runs `changed` once it listens and after each change. Throws as fetch.
  virtual void watch(sdk::Call& call, const std::function<void()>& changed);
};

/// The source that `settings.backend` names; reads nothing yet. Throws sdk::Failure INVALID with the setting's name.
std::unique_ptr<Source> open_source(const Settings& settings);

std::unique_ptr<Source> open_local(const Settings& settings);
std::unique_ptr<Source> open_http(const Settings& settings);
std::unique_ptr<Source> open_s3(const Settings& settings);
std::unique_ptr<Source> open_pg(const Settings& settings);
std::unique_ptr<Source> open_consul(const Settings& settings);
std::unique_ptr<Source> open_kubernetes(const Settings& settings);
std::unique_ptr<Source> open_cloud(const Settings& settings);

/// There is no state at `what`: UNAVAILABLE, for a missing state says nothing about the resources that it described.
[[noreturn]] void no_state(const std::string& what);
/// A watch asks no sooner again, whatever the server (or what lies before it) answers.
inline constexpr std::chrono::seconds kWatchRound{1};

}  // namespace driftd::terraform
