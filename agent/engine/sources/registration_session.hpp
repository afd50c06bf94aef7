// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/ports/session.hpp"
#include "core/scope.hpp"

namespace driftd::engine {

/// A backend's session with, beside what its provider reads, what a source says of its registration (kind
/// `registration`: the mapped Secret, Service, object). Without a provider of its own (a discovered backend that the
/// config does not name) that is all there is. Until a source has spoken it adds nothing. Core thread only.
class RegistrationSession final : public core::Session {
 public:
  /// Asks the source whether it still knows of this backend: a word that is taken back must be confirmed by a read.
  using SourceRead = std::function<Task<Result<core::ReadOutcome>>()>;

  /// Of `backend`. `inner` may be null: a discovered one, found by the backend `source` with its `provider`.
  RegistrationSession(std::string backend, std::shared_ptr<core::Session> inner, SourceRead read_source,
                      std::string source, std::string provider);

  /// What a source sent: a record, or a tombstone. True when it is the first word: the backend has a kind more now.
  bool receive_report(core::Observation record, std::shared_ptr<const core::KindSchema> schema,
                      std::shared_ptr<const std::string> schema_text);

  /// The source's last word is that it knows nothing of this backend any more.
  bool is_retracted() const { return report_ && report_->tombstone; }
  /// As a source itself: its provider has the kind `registration`; it listed all of them in the last refresh.
  bool inner_reports_registrations() const {
    return inner_info_ && inner_info_->schemas.contains(std::string(core::kRegistration));
  }
  bool inner_listed() const { return inner_listed_; }
  /// What `info` was given out with the kind that a source speaks in; false: read_source info() again before records of
  /// it.
  bool current(const core::ProviderInfo* info) const { return schema_ == nullptr || (info_ && info_.get() == info); }

  Task<Result<std::shared_ptr<const core::ProviderInfo>>> info() override;
  Task<Result<core::RefreshOutcome>> refresh(core::RefreshRequest request, core::PageHandler on_page) override;
  Task<Result<core::ReadOutcome>> read(std::vector<core::ResourceId> ids, std::chrono::milliseconds deadline) override;
  Task<Result<core::HealthReport>> health() override;
  Task<Status> watch(std::string cursor, core::PageHandler on_page) override;
  Task<Result<std::vector<core::Demotion>>> demote(core::ResourceId id, std::vector<core::Change> changes) override;
  Task<Result<core::DiscoverOutcome>> discover() override;
  Task<Result<std::string>> upgrade(std::string kind, std::uint32_t from_revision, std::string body) override;
  Task<Result<core::ApplyOutcome>> apply(core::ApplyRequest request) override;
  core::WorkerStatus status() const override;
  Status resume() override;
  void on_change(std::function<void()> handler) override;
  Task<void> stop() override;

 private:
  core::RecordPage page() const;
  Task<void> confirm(core::ResourceId id, core::ReadOutcome& out);

  Task<Status> pass_on(core::RecordPage page, core::PageHandler on_page);

  core::ResourceId id_;
  std::shared_ptr<core::Session> inner_;
  SourceRead read_source_;
  bool listing_ = false, inner_listed_ = false;  ///< in the refresh under way; in the last one that was not unchanged
  std::string source_, provider_;
  std::shared_ptr<const core::KindSchema> schema_;
  std::shared_ptr<const std::string> schema_text_;
  std::uint64_t report_count_ = 0;                               ///< heard so far
  std::optional<core::Observation> report_;                      ///< a tombstone: the source says that it is gone
  std::shared_ptr<const core::ProviderInfo> inner_info_, info_;  ///< what `inner` said of itself; with our kind
};

}  // namespace driftd::engine
