// SPDX-License-Identifier: Apache-2.0
// A session whose plugin is a function of the test.
#pragma once

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "base/fatal.hpp"
#include "sinks/plugin/plugin_sink.hpp"
#include "support/sink_events.hpp"

namespace driftd::test {

/// What a fake plugin does in one call of deliver.
using FakeDeliver = std::function<core::DeliverEnd(const core::DeliverRequest&, const core::SettledHandler&)>;

class FakeSession final : public core::Session {
 public:
  explicit FakeSession(asio::any_io_executor core) : core_(std::move(core)) {
    info_->id = "fake";
    info_->version = "1";
    info_->sink = core::SinkPluginInfo{"", core::kCloudEventsJson, 4, 1u << 20, true, true};
  }
  core::ProviderInfo& described() { return *info_; }
  FakeDeliver deliver_with;
  std::vector<std::vector<std::string>> batches;  ///< ids, one list for each call
  std::size_t running = 0, most_running = 0;      ///< calls of deliver
  std::uint64_t flushing_worker = 1;
  bool answers_later = false;  ///< each call ends in a later turn of the executor
  bool hidden = false;         ///< it cannot be described
  std::function<void()> changed;
  void on_change(std::function<void()> handler) override { changed = std::move(handler); }

  Task<core::DeliverEnd> deliver(core::DeliverRequest request, core::SettledHandler settled) override {
    most_running = std::max(most_running, ++running);
    auto& ids = batches.emplace_back();
    for (const auto& event : request.events) ids.push_back(event.id);
    if (answers_later) co_await asio::post(core_, asio::use_awaitable);
    core::DeliverEnd end = deliver_with(request, settled);
    --running;
    co_return end;
  }
  Task<Result<std::uint64_t>> flush(std::chrono::milliseconds) override { co_return flushing_worker; }
  Task<Result<std::shared_ptr<const core::ProviderInfo>>> info() override {
    if (hidden) co_return fail(Code::unavailable, "its worker ended");
    co_return std::shared_ptr<const core::ProviderInfo>(info_);
  }
  Task<Result<core::HealthReport>> health() override { co_return core::HealthReport{}; }
  core::WorkerStatus worker;  ///< as status() tells it
  core::WorkerStatus status() const override { return worker; }
  Task<void> stop() override { co_return; }

  Task<Result<core::RefreshOutcome>> refresh(core::RefreshRequest, core::PageHandler) override { co_return no(); }
  Task<Result<core::ReadOutcome>> read(std::vector<core::ResourceId>, std::chrono::milliseconds) override {
    co_return no();
  }
  Task<Status> watch(std::string, core::PageHandler) override { co_return no(); }
  Task<Result<std::vector<core::Demotion>>> demote(core::ResourceId, std::vector<core::Change>) override {
    co_return no();
  }
  Task<Result<core::DiscoverOutcome>> discover() override { co_return no(); }
  Task<Result<std::string>> upgrade(std::string, std::uint32_t, std::string) override { co_return no(); }
  Task<Result<core::ApplyOutcome>> apply(core::ApplyRequest) override { co_return no(); }

 private:
  static tl::unexpected<Error> no() { return fail(Code::unsupported, "a sink plugin has no such call"); }
  const asio::any_io_executor core_;
  const std::shared_ptr<core::ProviderInfo> info_ = std::make_shared<core::ProviderInfo>();
};

class FakeSessions final : public core::SessionFactory {
 public:
  explicit FakeSessions(std::shared_ptr<FakeSession> session) : session_(std::move(session)) {}
  Task<std::vector<ScanResult>> scan() override { co_return std::vector<ScanResult>{}; }
  Result<std::shared_ptr<core::Session>> open(core::SessionSpec spec) override {
    opened = std::move(spec);
    return session_;
  }
  void on_event(std::function<void(core::SessionEvent)>) override {}
  core::SessionSpec opened;

 private:
  const std::shared_ptr<FakeSession> session_;
};

}  // namespace driftd::test
