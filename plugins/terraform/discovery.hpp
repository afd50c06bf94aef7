// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <mutex>
#include <string>
#include <vector>

#include "common/identity_guard.hpp"
#include "terraform/discover.hpp"
#include "terraform/source.hpp"
#include "terraform/state_emitter.hpp"

namespace driftd::terraform {

/// The backends that a state holds, kept until the state changes. Thread-safe.
class DiscoveryRun {
 public:
  /// Stores what a refresh found in the state with this stamp, so that the next discovery need not read it again.
  void learn(const std::string& stamp, Finder&& found) {
    const std::lock_guard lock(mutex_);
    take(stamp, std::move(found));
  }

  /// Pushes each backend; the result is complete unless one could not be read. Throws like Source::fetch, read_head and
  /// IdentityGuard.
  sdk::Discovery run(sdk::Call& call, const sdk::Discoverer& to, Source& source, const Settings& settings,
                     const common::IdentityGuard& lineage) {
    const Fetched fetched = source.fetch(call, known());
    if (!fetched.unchanged) read(fetched, settings, lineage);
    const std::lock_guard lock(mutex_);
    for (const auto& diagnostic : diagnostics_) call.diag(diagnostic);
    for (auto& backend : backends_) {
      if (fetched.sent_ns != 0) backend.observed_ns = fetched.sent_ns;
      to.push(backend);
    }
    const bool settled = looks_again_ == 0;  // the host needs two discoveries without a backend before it counts as
                                             // gone
    if (!settled) --looks_again_;
    return {diagnostics_.empty(), settled ? kNext : 0};
  }

 private:
  static constexpr std::int64_t kNext = 60'000;  // the host asks at once after a refresh that found something new
  static constexpr int kLooks = 4;               // some of them may be too close to each other to count

  /// Passes every instance of a state to a Finder.
  class Reader final : public StateVisitor {
   public:
    explicit Reader(Finder& to) : to_(to) {}
    bool instance(const Instance& instance) override {
      (void)to_.find(instance);
      return true;
    }
    bool output(const std::string&, const nlohmann::json&) override { return true; }

   private:
    Finder& to_;
  };

  /// Returns the stamp of the state that the backends come from; empty before the first one.
  std::string known() const {
    const std::lock_guard lock(mutex_);
    return stamp_;
  }
  /// Reads a fetched state and learns its backends. Throws UNSUPPORTED if it is encrypted.
  void read(const Fetched& fetched, const Settings& settings, const common::IdentityGuard& lineage) {
    const Reading reading = read_fetched(fetched, {});
    lineage.check(reading.head.lineage);
    if (reading.head.encrypted)
      throw sdk::Failure(DRIFTD_UNSUPPORTED, "the state is encrypted by OpenTofu; its backends are not known");
    Finder finder(reading, settings);
    Reader reader(finder);
    read_contents(fetched.state, reading.head, reader);
    learn(fetched.stamp, std::move(finder));
  }
  /// Replaces what is known, under the mutex. A backend that is gone makes the next discoveries follow at once.
  void take(const std::string& stamp, Finder&& found) {
    const auto gone = [&](const sdk::Backend& backend) { return !found.names.contains(backend.name); };
    if (std::any_of(backends_.begin(), backends_.end(), gone)) looks_again_ = kLooks;
    stamp_ = stamp;
    backends_ = std::move(found.backends);
    diagnostics_ = std::move(found.diagnostics);
  }

  mutable std::mutex mutex_;  ///< guards all of these
  std::string stamp_;         ///< of the state that they come from
  std::vector<sdk::Backend> backends_;
  std::vector<sdk::Diagnostic> diagnostics_;  ///< not empty: `backends_` is incomplete
  int looks_again_ = 0;                       ///< discoveries that are still due at once
};

}  // namespace driftd::terraform
