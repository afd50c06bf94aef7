// SPDX-License-Identifier: Apache-2.0
// A clock that stands still until a test moves it, and resources to observe.
#pragma once

#include <cstdlib>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "controller/clock.hpp"
#include "controller/controller.hpp"

namespace driftd::controller {

using namespace std::chrono_literals;

class StandingClock final : public Clock {
 public:
  Time now() const override { return Time{} + std::chrono::hours(1) + passed_; }
  std::chrono::system_clock::time_point wall() const override {
    return std::chrono::system_clock::time_point(
        std::chrono::duration_cast<std::chrono::system_clock::duration>(passed_));
  }
  void wait_until(std::unique_lock<std::mutex>&, std::condition_variable&, Time) const override { std::abort(); }
  void pass(Duration time) { passed_ += time; }
  void pass_until(Time time) {
    if (time > now()) passed_ += time - now();
  }

 private:
  Duration passed_{};
};

inline Key key_of(const std::string& name) { return {"infrastructure", name}; }

inline ResourceMeta resource(const std::string& name, std::int64_t generation = 1) {
  ResourceMeta out;
  out.uid = "uid-" + name;
  out.api_version = "prism.io/v1alpha1";
  out.kind = "PrismBackend";
  out.key = key_of(name);
  out.generation = generation;
  return out;
}

/// Does what the test says, and remembers what it was called for.
class ScriptedReconciler final : public Reconciler {
 public:
  using Script = std::function<Outcome(const Key&, Context&)>;
  Outcome reconcile(const Key& key, Context& context) override {
    note("reconcile " + key.name);
    return on_reconcile ? on_reconcile(key, context) : Outcome(Success{});
  }
  Outcome finalize(const Key& key, Context& context) override {
    note("finalize " + key.name);
    return on_finalize ? on_finalize(key, context) : Outcome(Success{});
  }
  Script on_reconcile, on_finalize;
  std::vector<std::string> calls;  ///< to be read when no call runs

 private:
  void note(std::string call) {
    const std::lock_guard lock(mutex_);
    calls.push_back(std::move(call));
  }
  std::mutex mutex_;
};

/// The seeds of a test of random lives: 4,000, DRIFTD_CONTROLLER_SEEDS of them, or DRIFTD_CONTROLLER_SEED alone.
struct Seeds {
  Seeds() {
    if (const char* const count = std::getenv("DRIFTD_CONTROLLER_SEEDS")) last = std::strtoull(count, nullptr, 10);
    const char* const one = std::getenv("DRIFTD_CONTROLLER_SEED");
    if (one == nullptr) return;
    is_one = true;
    first = last = std::strtoull(one, nullptr, 10);
  }
  std::uint64_t first = 1, last = 4'000;
  bool is_one = false;
};

struct Lines {
  Log log() {
    return [this](LogLevel, const std::string& text) { all.push_back(text); };
  }
  bool have(const std::string& part) const {
    for (const auto& line : all) {
      if (line.find(part) != std::string::npos) return true;
    }
    return false;
  }
  std::vector<std::string> all;
};

}  // namespace driftd::controller
