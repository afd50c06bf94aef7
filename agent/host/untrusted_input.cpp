// SPDX-License-Identifier: Apache-2.0
#include "host/untrusted_input.hpp"

#include <fmt/format.h>
#include <algorithm>

#include "core/scope.hpp"
#include "ipc/limits.hpp"

namespace driftd::host {
namespace {

constexpr std::size_t kPageRecords = 512;
constexpr std::size_t kPageBytes = 4u << 20;
constexpr std::size_t kMaxReason = 1u << 10;  // bytes of the text about a broken rule

tl::unexpected<Error> broken(std::string message) { return fail(Code::invalid, std::move(message)); }

Status check_name(const std::string& text, const char* member, std::size_t max_size = ipc::kMaxName) {
  if (text.size() > max_size) return broken(fmt::format("sent a record whose {} has {} bytes", member, text.size()));
  if (!ipc::is_utf8(text)) return broken(fmt::format("sent a record whose {} is not UTF-8", member));
  return {};
}

Status check_parts(const core::Observation& record) {
  for (const auto& unread : record.unread) DRIFTD_CHECK(check_name(unread.path, "unread path"));
  for (const auto& [key, value] : record.metadata) {
    DRIFTD_CHECK(check_name(key, "metadata"));
    DRIFTD_CHECK(check_name(value, "metadata", ipc::kMaxText));
  }
  return {};
}

bool declared(const core::ProviderInfo& info, const std::string& kind) {
  return std::find(info.kinds.begin(), info.kinds.end(), kind) != info.kinds.end();
}

std::string shown(const std::string& name) { return ipc::one_line(name, 64); }

}  // namespace

/// Does not parse the body: an unchanged body is never parsed in the agent, and the judge treats a changed body that is
/// not a JSON object as unreadable.
Status check(const core::Observation& record, const core::ProviderInfo& info) {
  DRIFTD_CHECK(check_name(record.id.kind, "kind"));
  DRIFTD_CHECK(check_name(record.id.id, "id"));
  if (record.id.kind.empty() || record.id.id.empty()) return broken("sent a record without kind or id");
  if (record.backend.empty() && !declared(info, record.id.kind))
    return broken(fmt::format("sent a record of kind `{}`, which describe does not declare", shown(record.id.kind)));
  DRIFTD_CHECK(check_name(record.backend, "backend"));
  DRIFTD_CHECK(check_name(record.version, "version"));
  DRIFTD_CHECK(check_name(record.external_name, "external_name"));
  DRIFTD_CHECK(check_name(record.origin, "origin"));
  return check_parts(record);
}

Status check(const core::Mark& mark, const core::ProviderInfo& info) {
  const bool whole = mark.type == core::Mark::Type::complete;
  DRIFTD_CHECK(check_name(mark.backend, "mark's backend"));
  DRIFTD_CHECK(check_name(mark.kind, "mark's kind"));
  if (!mark.backend.empty()) {  // its kinds are those of another plugin
    if (whole && mark.kind.empty()) return broken("sent COMPLETE without a kind");
  } else if (whole ? !declared(info, mark.kind) : !mark.kind.empty() && !declared(info, mark.kind))
    return broken(fmt::format("sent a mark for kind `{}`, which describe does not declare", shown(mark.kind)));
  if (mark.cursor.size() > ipc::kMaxCursor) return broken(fmt::format("sent a cursor of {} bytes", mark.cursor.size()));
  if (mark.type < core::Mark::Type::checkpoint) return broken("sent a mark of no type");
  return {};
}

std::int64_t clean_wait(std::int64_t ms) { return std::clamp<std::int64_t>(ms, 0, ipc::kMaxWait.count()); }

void clean(core::Observation& record, const ipc::Scrubber& scrubber) {
  for (auto& unread : record.unread) unread.reason = scrubber.printable(unread.reason, ipc::kMaxText);
}

void clean(core::Diagnostic& d, const ipc::Scrubber& scrubber) {
  d.kind = ipc::printable(d.kind, ipc::kMaxName);
  d.id = ipc::printable(d.id, ipc::kMaxName);
  d.backend = ipc::printable(d.backend, ipc::kMaxName);
  for (auto* text : {&d.path, &d.text, &d.right}) *text = scrubber.printable(*text, ipc::kMaxText);
  d.text = ipc::as_sentence(d.text);
  d.retry_after_ms = clean_wait(d.retry_after_ms);
}

void clean(core::HealthReport& report, const ipc::Scrubber& scrubber) {
  for (auto* text : {&report.reason, &report.role, &report.system_identity, &report.server_version})
    *text = scrubber.printable(*text, ipc::kMaxText);
  report.reason = ipc::as_sentence(report.reason);
  report.latency_us = std::clamp<std::int64_t>(report.latency_us, 0, ipc::kMaxWait.count() * 1000);
}

void clean(ipc::CallResult& result, const ipc::Scrubber& scrubber) {
  result.message = ipc::as_sentence(scrubber.printable(result.message, ipc::kMaxText));
  result.misuse = scrubber.one_line(result.misuse, kMaxReason);
  result.retry_after_ms = clean_wait(result.retry_after_ms);
}

Status PageBuilder::add(const ipc::Frame& frame, std::vector<core::RecordPage>& ready) {
  if (frame.type == ipc::FrameType::records) return add_records(frame.payload, ready);
  if (frame.type == ipc::FrameType::mark) return add_mark(frame.payload, ready);
  return add_diagnostic(frame.payload, ready);
}

void PageBuilder::cut(std::vector<core::RecordPage>& ready) {
  if (page_.records.empty() && page_.marks.empty() && page_.diagnostics.empty()) return;
  ready.push_back(std::exchange(page_, {}));
  page_bytes_ = 0;
}

void PageBuilder::finish(std::vector<core::RecordPage>& ready) {
  if (dropped_ > 0) {
    core::Diagnostic more;
    more.text = fmt::format("{} more diagnostics were dropped", std::exchange(dropped_, 0));
    page_.diagnostics.push_back(std::move(more));
  }
  cut(ready);
}

Status PageBuilder::add_records(std::string_view payload, std::vector<core::RecordPage>& ready) {
  ipc::Decoder decoder(payload, ipc::kMaxListItems);
  std::uint32_t count = 0;
  decoder(count);
  if (count == 0 || count > ipc::kMaxBatch) return broken(fmt::format("sent {} records in one frame", count));
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::size_t before = decoder.left();
    core::Observation record;
    decoder(record);
    if (!decoder.ok()) break;
    DRIFTD_CHECK(add_record(std::move(record), before - decoder.left(), ready));
  }
  if (!decoder.whole()) return broken("sent records that cannot be decoded");
  return {};
}

Status PageBuilder::add_record(core::Observation record, std::size_t bytes, std::vector<core::RecordPage>& ready) {
  DRIFTD_CHECK(check(record, *info_));
  clean(record, scrubber_);
  bytes_ += bytes;
  if (++records_ > bounds_.records || bytes_ > bounds_.bytes)
    return broken(fmt::format("sent more than its budget of {} records or {} bytes", bounds_.records, bounds_.bytes));
  if (page_.records.size() >= kPageRecords || page_bytes_ + bytes > kPageBytes) cut(ready);
  page_bytes_ += bytes;
  page_.records.push_back(std::move(record));
  return {};
}

Status PageBuilder::add_mark(std::string_view payload, std::vector<core::RecordPage>& ready) {
  auto mark = ipc::decode<core::Mark>(payload);
  if (!mark) return broken("sent a mark that cannot be decoded");
  DRIFTD_CHECK(check(*mark, *info_));
  if (!mark->backend.empty() && ++records_ > bounds_.records)
    return broken("sent more marks of other backends than records are allowed");
  page_.marks.push_back(std::move(*mark));
  cut(ready);
  return {};
}

/// Clears a kind that describe does not declare. Otherwise a provider could fill the agent's memory with invented
/// kinds.
void PageBuilder::make_general_unless_declared(core::Diagnostic& diagnostic) const {
  const std::string& kind = diagnostic.kind;
  const bool own = diagnostic.backend.empty() && !kind.empty();
  if (!own || declared(*info_, kind) || kind == core::kRegistration) return;
  diagnostic.text = fmt::format("of kind `{}`, which describe does not declare: {}", shown(kind), diagnostic.text);
  diagnostic.kind.clear();
}

Status PageBuilder::add_diagnostic(std::string_view payload, std::vector<core::RecordPage>& ready) {
  auto diagnostic = ipc::decode<core::Diagnostic>(payload);
  if (!diagnostic) return broken("sent a diagnostic that cannot be decoded");
  if (++diagnostics_ > bounds_.diagnostics) {
    ++dropped_;
    return {};
  }
  clean(*diagnostic, scrubber_);
  make_general_unless_declared(*diagnostic);
  page_bytes_ += payload.size();
  page_.diagnostics.push_back(std::move(*diagnostic));
  if (page_bytes_ > kPageBytes) cut(ready);
  return {};
}

}  // namespace driftd::host
