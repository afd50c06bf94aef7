// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "core/ports/session.hpp"

namespace driftd::engine {

/// The session of a backend that is registered, but whose definition cannot be used at present: every call fails as
/// `invalid` with the reason, so that status and CLI show it, and nothing of the backend is judged.
class UnusableSession final : public core::Session {
 public:
  explicit UnusableSession(std::string why) : why_(std::move(why)) {}

  Task<Result<std::shared_ptr<const core::ProviderInfo>>> info() override { co_return error(); }
  Task<Result<core::RefreshOutcome>> refresh(core::RefreshRequest, core::PageHandler) override { co_return error(); }
  Task<Result<core::ReadOutcome>> read(std::vector<core::ResourceId>, std::chrono::milliseconds) override {
    co_return error();
  }
  Task<Result<core::HealthReport>> health() override { co_return error(); }
  Task<Status> watch(std::string, core::PageHandler) override { co_return error(); }
  Task<Result<std::vector<core::Demotion>>> demote(core::ResourceId, std::vector<core::Change>) override {
    co_return error();
  }
  Task<Result<core::DiscoverOutcome>> discover() override { co_return error(); }
  Task<Result<std::string>> upgrade(std::string, std::uint32_t, std::string) override { co_return error(); }
  Task<Result<core::ApplyOutcome>> apply(core::ApplyRequest) override { co_return error(); }
  core::WorkerStatus status() const override {
    core::WorkerStatus out;
    out.state = "unusable";
    out.last_exit = why_;
    return out;
  }
  Task<void> stop() override { co_return; }

 private:
  tl::unexpected<Error> error() const { return fail(Code::invalid, why_); }

  const std::string why_;
};

}  // namespace driftd::engine
