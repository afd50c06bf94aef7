// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "unit/engine/on_the_store.hpp"

namespace driftd::test {

inline core::Rules enforcing() {
  core::Rules out;
  out.class_policy = {{core::ChangeClass::config, core::Action::enforce}};
  out.generation = 7;
  return out;
}

/// The engine with a scripted provider that can put values back, and the policy `enforce` for all configuration.
class EnforcingEngine : public EngineOnTheStore {
 protected:
  EnforcingEngine() { prepare(); }
  void prepare() {
    line_->world->extensions = {"driftd.apply"};
    line_->enforce.allowed_globally = line_->enforce.allowed_here = true;
    line_->enforce.minimum_age = std::chrono::seconds(0);
    line_->enforce.owner = "cluster/agent";
    line_->enforce.per_hour = 1'000;
  }
  void begin() {
    line_->start(false, enforcing());
    ASSERT_TRUE(line_->refresh().complete());
  }
  /// Another process on the same store and the same system.
  void again() {
    const core::EnforceSettings settings = line_->enforce;
    const Nanos ahead = line_->clock->wall() - SystemClock().wall();
    another_process();
    prepare();
    line_->enforce = settings;
    line_->clock->pass(std::chrono::nanoseconds(ahead));
    line_->start(false, enforcing());
  }
  void set(int number, int partitions) {
    line_->world->resources[thing(number)] = R"({"partitions":)" + std::to_string(partitions) + "}";
  }
  std::string body(int number) { return line_->world->resources[thing(number)]; }
  std::vector<core::Enforcement> operations() {
    auto rows = line_->wait(line_->store().enforcements({"", "", "", 1'000}));
    EXPECT_TRUE(rows) << rows.error().message;
    return rows.value_or(std::vector<core::Enforcement>{});
  }
  std::vector<std::string> verbs() {
    std::vector<std::string> out;
    for (const auto& line : line_->audit()) out.push_back(line.verb);
    return out;
  }
  std::vector<core::ApplyRequest> written() {
    std::vector<core::ApplyRequest> out;
    for (const auto& call : line_->world->applied) {
      if (!call.dry_run) out.push_back(call);
    }
    return out;
  }
  std::map<std::string, core::Hold> held() { return line_->enforcement().backends.at(0).held; }
  Result<core::Enforcement> ask(const core::Drift& drift, bool dry_run = false, std::string digest = {}) {
    if (digest.empty()) digest = line_->binding(drift);
    return line_->wait(
        line_->engine().enforce(drift.id, digest, dry_run, {"kim", "put it back", {}, line_->clock->wall()}));
  }
};

}  // namespace driftd::test
