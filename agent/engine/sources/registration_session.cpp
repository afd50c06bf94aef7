// SPDX-License-Identifier: Apache-2.0
#include "engine/sources/registration_session.hpp"

#include <algorithm>
#include <iterator>

#include "core/scope.hpp"

namespace driftd::engine {
namespace {

tl::unexpected<Error> unread() {
  return fail(Code::unsupported, "a discovered backend is not read: configure a backend of its name to read it");
}

}  // namespace

RegistrationSession::RegistrationSession(std::string backend, std::shared_ptr<core::Session> inner,
                                         SourceRead read_source, std::string source, std::string provider)
    : id_{std::string(core::kRegistration), std::move(backend)},
      inner_(std::move(inner)),
      read_source_(std::move(read_source)),
      source_(std::move(source)),
      provider_(std::move(provider)) {}

bool RegistrationSession::receive_report(core::Observation record, std::shared_ptr<const core::KindSchema> schema,
                                         std::shared_ptr<const std::string> schema_text) {
  const bool first = schema_ == nullptr || (schema_text != schema_text_ && *schema_text != *schema_text_);
  schema_ = std::move(schema);
  schema_text_ = std::move(schema_text);
  if (first) info_.reset();
  report_ = std::move(record);
  ++report_count_;
  return first;
}

Task<Result<std::shared_ptr<const core::ProviderInfo>>> RegistrationSession::info() {
  std::shared_ptr<const core::ProviderInfo> inner_info;
  if (inner_) {
    DRIFTD_CO_TRY(inner_info, co_await inner_->info());
    if (schema_ == nullptr) {
      inner_info_ = inner_info;
      co_return inner_info;
    }
  }
  if (info_ && inner_info == inner_info_) co_return info_;
  core::ProviderInfo out;
  if (inner_info) out = *inner_info;
  if (!inner_info) out.id = provider_;
  if (schema_ != nullptr) {
    const std::string kind(core::kRegistration);
    if (std::find(out.kinds.begin(), out.kinds.end(), kind) == out.kinds.end()) out.kinds.push_back(kind);
    out.schemas.emplace(kind, schema_);  // a provider that reports registrations has its own schema
    out.schema_texts.emplace(kind, *schema_text_);
  }
  inner_info_ = std::move(inner_info);
  info_ = std::make_shared<const core::ProviderInfo>(std::move(out));
  co_return info_;
}

core::RecordPage RegistrationSession::page() const {
  core::RecordPage out;
  if (report_ && !report_->tombstone) out.records.push_back(*report_);
  core::Mark complete;
  complete.type = core::Mark::Type::complete;
  complete.kind = core::kRegistration;
  complete.count = out.records.size();
  out.marks.push_back(std::move(complete));
  return out;
}

Task<Result<core::RefreshOutcome>> RegistrationSession::refresh(core::RefreshRequest request,
                                                                core::PageHandler on_page) {
  core::RefreshOutcome outcome;
  if (inner_) {
    listing_ = false;
    core::PageHandler passing = [this, on_page](core::RecordPage page) { return pass_on(std::move(page), on_page); };
    DRIFTD_CO_TRY(outcome, co_await inner_->refresh(std::move(request), std::move(passing)));
    if (!outcome.unchanged) inner_listed_ = listing_;
    if (outcome.unchanged || schema_ == nullptr) co_return outcome;  // a new report was judged as a page of its own
  }
  // A schema that arrived during the refresh is not known to the caller yet. The next cycle sends the report.
  if (schema_ != nullptr && info_) {
    core::RecordPage own_page = page();
    const Status taken = co_await on_page(std::move(own_page));
    if (!taken) co_return fail(taken.error());
  }
  co_return outcome;
}

/// A provider that reports registrations of others marks the kind as complete, although none is its own. That is noted
/// and not passed on: whether this backend has a registration, others report.
Task<Status> RegistrationSession::pass_on(core::RecordPage page, core::PageHandler on_page) {
  const auto listed = std::erase_if(page.marks, [](const core::Mark& mark) {
    return mark.type == core::Mark::Type::complete && mark.backend.empty() && mark.kind == core::kRegistration;
  });
  listing_ = listing_ || listed > 0;
  auto status = co_await on_page(std::move(page));
  co_return status;
}

Task<Result<core::ReadOutcome>> RegistrationSession::read(std::vector<core::ResourceId> ids,
                                                          std::chrono::milliseconds deadline) {
  core::ReadOutcome out;
  std::vector<core::ResourceId> others;
  for (auto& id : ids) {
    if (id != id_ || schema_ == nullptr) {
      others.push_back(std::move(id));
      continue;
    }
    if (!report_) continue;  // no report in this process: unknown
    if (report_->tombstone) co_await confirm(id, out);
    if (!report_->tombstone) out.found.push_back(*report_);
  }
  if (others.empty()) co_return out;
  if (!inner_) co_return unread();
  DRIFTD_CO_TRY(auto read, co_await inner_->read(std::move(others), deadline));
  std::move(out.found.begin(), out.found.end(), std::back_inserter(read.found));
  std::move(out.not_found.begin(), out.not_found.end(), std::back_inserter(read.not_found));
  co_return read;
}

/// Confirms a retraction by a read at the source. The registration stays unknown if the source cannot be read.
Task<void> RegistrationSession::confirm(core::ResourceId id, core::ReadOutcome& out) {
  const std::uint64_t before = report_count_;
  const auto answer = co_await read_source_();
  if (!answer) {
    out.diagnostics.push_back(
        {Code::unavailable, id.kind, id.id, {}, "the source cannot confirm it: " + answer.error().message});
    co_return;
  }
  out.diagnostics.insert(out.diagnostics.end(), answer->diagnostics.begin(), answer->diagnostics.end());
  for (const auto& gone : answer->not_found) {
    if (gone == id) out.not_found.push_back(id);
  }
  for (const auto& found : answer->found) {
    if (found.id != id || report_count_ != before) continue;  // a newer report came meanwhile
    report_ = found;
    report_->backend.clear();
  }
}

Task<Result<core::HealthReport>> RegistrationSession::health() {
  if (inner_) {
    auto report = co_await inner_->health();
    co_return report;
  }
  core::HealthReport out;
  out.reason = "known from " + source_ + ", not read: no backend of this name is configured";
  co_return out;
}

Task<Status> RegistrationSession::watch(std::string cursor, core::PageHandler on_page) {
  if (!inner_) co_return unread();
  auto status = co_await inner_->watch(std::move(cursor), std::move(on_page));
  co_return status;
}

Task<Result<std::vector<core::Demotion>>> RegistrationSession::demote(core::ResourceId id,
                                                                      std::vector<core::Change> changes) {
  if (!inner_ || id == id_) co_return std::vector<core::Demotion>{};
  auto out = co_await inner_->demote(std::move(id), std::move(changes));
  co_return out;
}

Task<Result<core::DiscoverOutcome>> RegistrationSession::discover() {
  if (!inner_) co_return unread();
  auto out = co_await inner_->discover();
  co_return out;
}

Task<Result<std::string>> RegistrationSession::upgrade(std::string kind, std::uint32_t from_revision,
                                                       std::string body) {
  if (!inner_) co_return unread();
  auto out = co_await inner_->upgrade(std::move(kind), from_revision, std::move(body));
  co_return out;
}

Task<Result<core::ApplyOutcome>> RegistrationSession::apply(core::ApplyRequest request) {
  if (!inner_ || request.id == id_) co_return unread();
  auto out = co_await inner_->apply(std::move(request));
  co_return out;
}

core::WorkerStatus RegistrationSession::status() const {
  if (inner_) return inner_->status();
  core::WorkerStatus out;
  out.state = "discovered";
  return out;
}

Status RegistrationSession::resume() {
  if (inner_) return inner_->resume();
  return fail(Code::conflict, "nothing is parked");
}

void RegistrationSession::on_change(std::function<void()> handler) {
  if (inner_) inner_->on_change(std::move(handler));
}

Task<void> RegistrationSession::stop() {
  if (inner_) co_await inner_->stop();
}

}  // namespace driftd::engine
