// SPDX-License-Identifier: Apache-2.0
// A session of the provider `tester`, in a worker or in-process.
#pragma once

#include <gmock/gmock.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "contract/host/core_thread.hpp"
#include "support/process.hpp"

namespace driftd::test {

inline constexpr char kCanary[] = "canary-7f3a9b-secret\"value";

class SessionContract : public ::testing::TestWithParam<core::SessionSpec::Isolation> {
 protected:
  void TearDown() override {
    if (session_) core_.run(session_->stop());
  }
  core::Session& open(const nlohmann::json& settings, core::Budgets budgets = {}) {
    auto options = host_options(core_);
    options.grace = std::chrono::milliseconds(300);
    factory_ = host::make_session_factory(options);
    factory_->on_event([this](core::SessionEvent event) { events_.push_back(event.what + ": " + event.message); });
    core::SessionSpec spec;
    spec.backend = "b";
    spec.provider = DRIFTD_BINARY_DIR "/tests/providers/tester.so";
    spec.settings_json = settings.is_null() ? "{}" : settings.dump();
    spec.secrets = {{"token-1", kCanary}};
    spec.isolation = GetParam();
    spec.budgets = budgets;
    spec.budgets.call *= kPatience;
    if (kSanitized) spec.budgets.rss_bytes = 0;
    spec.worker_key = {"0a0b0c0d", {1, 2, 3}};
    session_ = factory_->open(spec).value();
    return *session_;
  }
  Result<core::RefreshOutcome> refresh(core::Session& session, const core::RefreshRequest& request = {}) {
    pages_->all.clear();
    return core_.run(session.refresh(request, keep(pages_)));
  }
  /// Returns every text of the last refresh that can leave the worker, and all events.
  std::string everything() const {
    std::string out;
    for (const auto& page : pages_->all) {
      for (const auto& r : page.records)
        out += r.body + r.status + (r.metadata.contains("leak") ? r.metadata.at("leak") : "");
      for (const auto& d : page.diagnostics) out += d.text + d.right;
    }
    for (const auto& event : events_) out += event;
    return out;
  }

  Core core_;
  std::shared_ptr<core::SessionFactory> factory_;
  std::shared_ptr<core::Session> session_;
  std::shared_ptr<Pages> pages_ = std::make_shared<Pages>();
  std::vector<std::string> events_;
};

}  // namespace driftd::test
