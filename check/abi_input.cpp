// SPDX-License-Identifier: Apache-2.0
#include "check/abi_input.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>

#include "core/value/path.hpp"
#include "core/value/value.hpp"
#include "ipc/text.hpp"

namespace driftd::check {
namespace {

constexpr std::size_t kMaxBody = 4u << 20, kMaxStatus = 1u << 20, kMaxCursor = 64u << 10;  // bytes
constexpr std::size_t kMaxText = 8u << 10;                                                 // bytes of a metadata value
constexpr std::size_t kMaxProse = 1u << 20;  // bytes of logs, diagnostics and reasons, which the agent truncates
constexpr std::uint32_t kMaxListItems = 4096;

void add_violation(const char* rule, const std::string& text) { Host::get().add_violation(rule, text); }

template <class T>
std::vector<T> elements(const T* first, std::uint32_t count, std::uint32_t stride, const char* member) {
  std::vector<T> out;
  if (count == 0) return out;
  if (first == nullptr || stride < sizeof(std::uint32_t) || count > kMaxListItems) {
    add_violation("schema.bodies",
                  fmt::format("a record's `{}` has {} elements of {} bytes at {}; expected at most {} of "
                              "their own size at an address",
                              member, count, stride, first == nullptr ? "NULL" : "an address", kMaxListItems));
    return out;
  }
  const char* at = reinterpret_cast<const char*>(first);
  for (std::uint32_t i = 0; i < count; ++i, at += stride) {
    out.push_back(copy_struct<T>(at));
    if (out.back().size > stride) {
      add_violation("schema.bodies", fmt::format("an element of a record's `{}` says size {} in a list with stride {}",
                                                 member, out.back().size, stride));
    }
  }
  return out;
}

std::string name_of(const Record& record) { return ipc::printable(core::render(record.id), 100); }

void check_path(const Record& record, const std::string& path, const char* member) {
  std::string plain = path;
  if (plain.ends_with(".**")) plain.resize(plain.size() - 3);
  const auto parsed = core::Path::parse(plain);
  const bool glob = core::Glob::parse_path(path).has_value();
  if (plain.empty() || (!parsed && !glob)) {
    add_violation("schema.unread", fmt::format("{}: {} path '{}' is no attribute path (a.b[0].c, a[\"x.y\"], a.**)",
                                               name_of(record), member, ipc::printable(path, 100)));
  }
}

void parse_lists(const driftd_record& given, Record& out) {
  for (const auto& u : elements(given.unread, given.unread_count, given.unread_stride, "unread")) {
    const std::string path = parse_text(u.path, "unread.path");
    check_path(out, path, "unread");
    const std::string reason = parse_text(u.reason, "unread.reason", kMaxProse);
    if (reason.empty()) {
      add_violation("schema.unread",
                    fmt::format("{}: unread path '{}' has no reason; say which right or what is missing", name_of(out),
                                ipc::printable(path, 100)));
    }
    if (u.code == DRIFTD_OK) {
      add_violation("schema.unread", fmt::format("{}: unread path '{}' has the code OK", name_of(out), path));
    }
    out.unread.push_back({path, parse_status(u.code, "an unread path"), reason});
  }
  for (const auto& kv : elements(given.metadata, given.metadata_count, given.metadata_stride, "metadata")) {
    out.metadata[parse_text(kv.key, "metadata.key")] = parse_text(kv.value, "metadata.value", kMaxText);
  }
  if (given.sensitive_count > kMaxListItems || (given.sensitive == nullptr && given.sensitive_count != 0)) {
    add_violation("schema.unread",
                  fmt::format("{}: `sensitive` is NULL or longer than {}", name_of(out), kMaxListItems));
    return;
  }
  for (std::uint64_t i = 0; i < given.sensitive_count; ++i) {
    out.sensitive.push_back(parse_text(given.sensitive[i], "sensitive"));
    check_path(out, out.sensitive.back(), "sensitive");
  }
}

void check_object(const Record& record, const std::string& text, const char* member) {
  const auto parsed = core::parse(text);
  if (parsed && parsed->object() != nullptr) return;
  add_violation("schema.bodies", fmt::format("{}: `{}` is not a JSON object that can be compared: {}", name_of(record),
                                             member, parsed ? "found something else" : parsed.error().message));
}

void check_record(const HostCall& call, const Record& record) {
  if (record.id.kind.empty() || record.id.id.empty()) {
    add_violation("schema.bodies", fmt::format("a record without kind or id: '{}'", name_of(record)));
  }
  if (record.backend.empty() && !call.declared->kinds.contains(record.id.kind)) {
    add_violation("schema.bodies", fmt::format("{}: kind '{}' is not declared in describe().kinds", name_of(record),
                                               ipc::printable(record.id.kind, 100)));
  }
  if (!record.tombstone) check_object(record, record.body, "body");
  if (!record.status.empty()) check_object(record, record.status, "status");
  if (record.tombstone && call.function != Function::watch) {
    add_violation("schema.bodies", fmt::format("{}: a tombstone in {}; only watch may say that something is gone, a "
                                               "refresh leaves it out and a read says NOT_FOUND",
                                               name_of(record), check::name_of(call.function)));
  }
}

Record parse_record(const driftd_record& given) {
  Record out;
  out.id = {parse_text(given.kind, "kind"), parse_text(given.id, "id")};
  out.backend = parse_text(given.backend, "backend");
  out.tombstone = given.tombstone != 0;
  if (given.body.len > kMaxBody) {
    add_violation("schema.bodies",
                  fmt::format("{}: `body` has {} bytes, at most {}", name_of(out), given.body.len, kMaxBody));
    out.body = "{}";
  } else {
    out.body = parse_text(given.body, "body", kMaxBody);
  }
  out.status = parse_text(given.status, "status", kMaxStatus);
  out.version = parse_text(given.version, "version");
  out.external_name = parse_text(given.external_name, "external_name");
  out.origin = parse_text(given.origin, "origin");
  out.observed_ns = given.observed_ns;
  out.revision = std::max(1u, given.schema_revision);
  parse_lists(given, out);
  return out;
}

}  // namespace

std::string parse_text(driftd_str given, const char* member, std::size_t max_bytes) {
  if (given.data == nullptr) {
    if (given.len != 0)
      add_violation("schema.text", fmt::format("`{}` is NULL with a length of {}", member, given.len));
    return {};
  }
  if (given.len > max_bytes) {
    add_violation("schema.text", fmt::format("`{}` has {} bytes, at most {}", member, given.len, max_bytes));
    return {};
  }
  std::string out(given.data, static_cast<std::size_t>(given.len));
  if (!ipc::is_utf8(out)) {
    add_violation("schema.text", fmt::format("`{}` is not UTF-8: '{}'", member, ipc::printable(out, 80)));
  }
  return out;
}

void parse_records(HostCall& call, const driftd_record* records, std::uint32_t count, std::uint32_t stride) {
  if (count != 0 && (records == nullptr || stride < sizeof(std::uint32_t))) {
    add_violation("schema.bodies", fmt::format("emit: {} records with stride {} at {}", count, stride,
                                               records == nullptr ? "NULL" : "an address"));
    return;
  }
  const char* at = reinterpret_cast<const char*>(records);
  for (std::uint32_t i = 0; i < count; ++i, at += stride) {
    const auto given = copy_struct<driftd_record>(at);
    if (given.size > stride || given.size < offsetof(driftd_record, status)) {
      add_violation("schema.bodies", fmt::format("emit: record {} says size {} in a list with stride {}; expected "
                                                 "sizeof(driftd_record)",
                                                 i, given.size, stride));
    }
    Record record = parse_record(given);
    check_record(call, record);
    call.trace.records.push_back(std::move(record));
  }
}

void parse_mark(HostCall& call, const driftd_mark* given) {
  const auto mark = copy_struct<driftd_mark>(given);
  Mark out{mark.type,
           parse_text(mark.kind, "mark.kind"),
           {},
           parse_text(mark.backend, "mark.backend"),
           mark.count,
           call.trace.records.size(),
           call.trace.diagnostics.size()};
  if (mark.type < DRIFTD_MARK_CHECKPOINT || mark.type > DRIFTD_MARK_BOOKMARK) {
    add_violation("refresh.complete_count", fmt::format("mark: type {} is unknown", mark.type));
  }
  if (mark.cursor.len > kMaxCursor) {
    add_violation("refresh.cursor_size",
                  fmt::format("mark: a cursor of {} bytes, at most {}", mark.cursor.len, kMaxCursor));
  } else if (mark.cursor.data != nullptr) {
    out.cursor.assign(mark.cursor.data, static_cast<std::size_t>(mark.cursor.len));
  }
  const bool complete = mark.type == DRIFTD_MARK_COMPLETE;
  if (complete && call.function != Function::refresh) {
    add_violation("refresh.complete_count",
                  fmt::format("COMPLETE of '{}' in {}; it belongs to refresh", out.kind, name_of(call.function)));
  }
  if (complete && out.kind.empty()) add_violation("refresh.complete_count", "COMPLETE without a kind");
  call.trace.marks.push_back(std::move(out));
}

Diagnostic parse_diagnostic(const driftd_diagnostic* given) {
  const auto d = copy_struct<driftd_diagnostic>(given);
  Diagnostic out;
  out.code = parse_status(d.code, "a diagnostic");
  out.kind = parse_text(d.kind, "diagnostic.kind");
  out.id = parse_text(d.id, "diagnostic.id");
  out.path = parse_text(d.path, "diagnostic.path", kMaxProse);
  out.text = parse_text(d.text, "diagnostic.text", kMaxProse);
  out.right = parse_text(d.right, "diagnostic.right", kMaxProse);
  out.retry_after_ms = d.retry_after_ms;
  out.backend = parse_text(d.backend, "diagnostic.backend");
  return out;
}

core::HealthReport parse_health(const driftd_health* given) {
  const auto h = copy_struct<driftd_health>(given);
  if (h.state > DRIFTD_HEALTH_DOWN) {
    add_violation("schema.statuses", fmt::format("health: state {} is unknown", h.state));
  }
  using State = core::HealthReport::State;
  const State state = h.state <= DRIFTD_HEALTH_DOWN ? static_cast<State>(h.state) : State::unknown;
  return {state,
          h.latency_us,
          parse_text(h.reason, "health.reason", kMaxProse),
          parse_text(h.role, "health.role"),
          parse_text(h.system_identity, "health.system_identity"),
          parse_text(h.server_version, "health.server_version")};
}

Verdict parse_verdict(const driftd_verdict* given) {
  const auto v = copy_struct<driftd_verdict>(given);
  return {v.index, v.verdict, parse_text(v.reason, "verdict.reason", kMaxProse)};
}

Code parse_status(driftd_status status, const char* of) {
  if (status >= DRIFTD_OK && status <= DRIFTD_INTERNAL) return static_cast<Code>(status);
  add_violation("schema.statuses", fmt::format("{}: status {} is no code of the ABI", of, status));
  return Code::internal;
}

}  // namespace driftd::check
