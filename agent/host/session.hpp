// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "host/supervisor.hpp"

namespace driftd::host {

/// core::Session over a supervisor. Its end kills the worker, if stop() did not end it before.
class SupervisedSession final : public core::Session {
 public:
  explicit SupervisedSession(std::shared_ptr<Supervisor> supervisor) : supervisor_(std::move(supervisor)) {}
  ~SupervisedSession() override { supervisor_->drop(); }
  SupervisedSession(const SupervisedSession&) = delete;
  SupervisedSession& operator=(const SupervisedSession&) = delete;

  Task<Result<std::shared_ptr<const core::ProviderInfo>>> info() override;
  Task<Result<core::RefreshOutcome>> refresh(core::RefreshRequest request, core::PageHandler on_page) override;
  Task<Result<core::ReadOutcome>> read(std::vector<core::ResourceId> ids, std::chrono::milliseconds deadline) override;
  Task<Result<core::HealthReport>> health() override;
  Task<Status> watch(std::string cursor, core::PageHandler on_page) override;
  Task<Result<std::vector<core::Demotion>>> demote(core::ResourceId id, std::vector<core::Change> changes) override;
  Task<Result<core::DiscoverOutcome>> discover() override;
  Task<Result<std::string>> upgrade(std::string kind, std::uint32_t from_revision, std::string body) override;
  Task<Result<core::ApplyOutcome>> apply(core::ApplyRequest request) override;
  core::WorkerStatus status() const override { return supervisor_->status(); }
  Task<void> stop() override;

 private:
  std::shared_ptr<Supervisor> supervisor_;
};

/// Runs a call to its end and hands its pages on in order; an error of `on_page` ends the call with that error. The
/// answer may carry a code other than ok: the plugin's.
Task<Result<CallResult>> drive(std::shared_ptr<Supervisor> supervisor, std::shared_ptr<Call> call,
                               core::PageHandler on_page);

}  // namespace driftd::host
