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

/// A backend's session that adds to the provider's resources what a source reports of the backend's registration (kind
/// `registration`: the mapped Secret, Service or object). A discovered backend that the config does not name has no
/// provider, so the registration is all it has. Adds nothing until a source has sent a report. Core thread only.
class RegistrationSession final : public core::Session {
 public:
  /// Reads the registration at the source. A retraction must be confirmed by such a read.
  using SourceRead = std::function<Task<Result<core::ReadOutcome>>()>;

  /// The session of `backend`. `inner` is null for a backend that the source `source` discovered with its `provider`.
  RegistrationSession(std::string backend, std::shared_ptr<core::Session> inner, SourceRead read_source,
                      std::string source, std::string provider);

  /// Takes a report: a record or a tombstone. Returns true if the kind or its schema is new for this backend.
  bool receive_report(core::Observation record, std::shared_ptr<const core::KindSchema> schema,
                      std::shared_ptr<const std::string> schema_text);

  /// True if the last report is a tombstone: the source does not know this backend any more.
  bool is_retracted() const { return report_ && report_->tombstone; }
  /// True if the backend is a source itself: its provider has the kind `registration`.
  bool inner_reports_registrations() const {
    return inner_info_ && inner_info_->schemas.contains(std::string(core::kRegistration));
  }
  bool inner_listed() const { return inner_listed_; }
  /// False if info() must be called again before records of the kind `registration` are judged under `info`.
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
  /// Registrations were listed: in the current refresh; in the last one that was not unchanged.
  bool listing_ = false, inner_listed_ = false;
  std::string source_, provider_;
  std::shared_ptr<const core::KindSchema> schema_;
  std::shared_ptr<const std::string> schema_text_;
  std::uint64_t report_count_ = 0;           ///< number of reports so far
  std::optional<core::Observation> report_;  ///< last report; a tombstone if the source says that the backend is gone
  /// What `inner` describes; the same with the kind `registration`
  std::shared_ptr<const core::ProviderInfo> inner_info_, info_;
};

}  // namespace driftd::engine
