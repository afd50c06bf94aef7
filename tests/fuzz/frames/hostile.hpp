// SPDX-License-Identifier: Apache-2.0
// Sessions whose worker is tests/fuzz/frames/worker/hostile.cpp.
#pragma once

#include <gtest/gtest.h>
#include <sys/resource.h>

#include "contract/host/core_thread.hpp"
#include "support/process.hpp"

namespace driftd::test {

inline long peak_kib() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

inline Task<Status> counted(std::size_t* diagnostics, core::RecordPage page) {
  *diagnostics += page.diagnostics.size();
  co_return Status{};
}

class Hostile : public ::testing::Test {
 protected:
  void SetUp() override {
    auto options = host_options(core_);
    options.grace = std::chrono::milliseconds(500);
    options.restart_first = options.restart_max = std::chrono::milliseconds(1);
    options.crashes_to_park = 1'000'000;
    good_ = host::make_session_factory(options);
    options.worker = DRIFTD_BINARY_DIR "/tests/fuzz/driftd_hostile_worker";
    bad_ = host::make_session_factory(options);
    bad_->on_event([this](core::SessionEvent event) { events_.push_back(event.what + ": " + event.message); });
  }
  void TearDown() override {
    for (const auto& session : sessions_) core_.run(session->stop());
  }
  core::SessionSpec spec(const std::string& file, const std::string& settings) {
    core::SessionSpec out;
    out.backend = "b";
    out.provider = file;
    out.settings_json = settings;
    out.secrets = {{"token", "token-value"}};
    out.budgets.records = 10'000;
    return out;
  }
  core::Session& open(const std::string& behaviour, const std::string& name = "hostile.so") {
    const std::string file = folder_.write(name, std::string(8, '\0'));  // not a plugin: the hostile worker does not
                                                                         // load it
    sessions_.push_back(bad_->open(spec(file, R"({"do":")" + behaviour + R"("})")).value());
    return *sessions_.back();
  }
  core::Session& open_good() {
    sessions_.push_back(good_->open(spec(DRIFTD_BINARY_DIR "/tests/providers/tester.so", "{}")).value());
    return *sessions_.back();
  }
  Result<core::RefreshOutcome> refresh(core::Session& session,
                                       std::chrono::milliseconds deadline = std::chrono::seconds(30)) {
    return core_.run(session.refresh({false, {}, {}, deadline}, keep(std::make_shared<Pages>())));
  }
  std::string why(core::Session& session) {
    const auto outcome = refresh(session);
    return outcome ? "it did not fail" : std::string(render(outcome.error().code)) + ": " + outcome.error().message;
  }

  TempDir folder_;
  Core core_;
  std::shared_ptr<core::SessionFactory> good_, bad_;
  std::vector<std::shared_ptr<core::Session>> sessions_;
  std::vector<std::string> events_;
};

}  // namespace driftd::test
