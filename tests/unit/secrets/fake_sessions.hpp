// SPDX-License-Identifier: Apache-2.0
// Sessions that only remember what they were opened with.
#pragma once

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/steady_timer.hpp>
#include <utility>

#include "core/ports/session.hpp"

namespace driftd::secrets {

/// What the fake sessions did.
struct Seen {
  std::vector<std::string> opened, refreshed, stopped;  ///< passwords
  std::vector<std::string> settings;                    ///< settings of each opened session
  std::string hold;                                     ///< a refresh with this password ends when it is emptied
  bool fails = false;                                   ///< refreshes fail
  std::string mute;                                     ///< a session with this password has no plugin
  std::string unopened;                                 ///< a session with this password cannot be opened
};

class FakeSession final : public core::Session {
 public:
  FakeSession(asio::any_io_executor core, Seen& seen, std::string password)
      : core_(std::move(core)),
        seen_(seen),
        password_(std::move(password)),
        stopped_(core_, asio::steady_timer::time_point::max()) {}
  Task<Result<std::shared_ptr<const core::ProviderInfo>>> info() override {
    if (!password_.empty() && seen_.mute == password_) co_return fail(Code::unavailable, "there is no plugin");
    co_return std::make_shared<const core::ProviderInfo>();
  }
  Task<Result<core::RefreshOutcome>> refresh(core::RefreshRequest, core::PageHandler) override {
    seen_.refreshed.push_back(password_);
    while (seen_.hold == password_) {
      asio::steady_timer soon(core_, std::chrono::milliseconds(5));
      co_await soon.async_wait(asio::as_tuple(asio::use_awaitable));
    }
    if (seen_.fails) co_return fail(Code::unauthenticated, "WRONGPASS");
    core::RefreshOutcome out;
    out.unchanged = ended_;
    co_return out;
  }
  Task<Result<core::ReadOutcome>> read(std::vector<core::ResourceId>, std::chrono::milliseconds) override {
    co_return core::ReadOutcome{};
  }
  Task<Result<core::HealthReport>> health() override {
    core::HealthReport out;
    out.reason = password_;
    co_return out;
  }
  Task<Status> watch(std::string, core::PageHandler) override {
    co_await stopped_.async_wait(asio::as_tuple(asio::use_awaitable));
    co_return fail(Code::cancelled, "stopped");
  }
  Task<Result<std::vector<core::Demotion>>> demote(core::ResourceId, std::vector<core::Change>) override {
    co_return std::vector<core::Demotion>{};
  }
  Task<Result<core::DiscoverOutcome>> discover() override { co_return core::DiscoverOutcome{}; }
  Task<Result<std::string>> upgrade(std::string, std::uint32_t, std::string) override { co_return std::string(); }
  Task<Result<core::ApplyOutcome>> apply(core::ApplyRequest) override { co_return core::ApplyOutcome{}; }
  core::WorkerStatus status() const override {
    core::WorkerStatus out;
    out.state = "running";
    out.restarts = 1;
    return out;
  }
  Task<void> stop() override {
    if (!std::exchange(ended_, true)) seen_.stopped.push_back(password_);
    stopped_.cancel();
    co_return;
  }

 private:
  asio::any_io_executor core_;
  Seen& seen_;
  const std::string password_;
  asio::steady_timer stopped_;
  bool ended_ = false;
};

class FakeFactory final : public core::SessionFactory {
 public:
  FakeFactory(asio::any_io_executor core, Seen& seen) : core_(std::move(core)), seen_(seen) {}
  Task<std::vector<ScanResult>> scan() override { co_return std::vector<ScanResult>{}; }
  Result<std::shared_ptr<core::Session>> open(core::SessionSpec spec) override {
    const auto secret = spec.secrets.find("driftd-secret-1");
    const std::string password = secret == spec.secrets.end() ? "" : secret->second;
    seen_.opened.push_back(password);
    seen_.settings.push_back(spec.settings_json);
    if (!password.empty() && seen_.unopened == password) return fail(Code::not_found, "no plugin for it");
    return std::make_shared<FakeSession>(core_, seen_, password);
  }
  void on_event(std::function<void(core::SessionEvent)>) override {}

 private:
  asio::any_io_executor core_;
  Seen& seen_;
};

}  // namespace driftd::secrets
