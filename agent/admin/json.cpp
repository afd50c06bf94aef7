// SPDX-License-Identifier: Apache-2.0
#include "admin/json.hpp"

#include "core/audit_text.hpp"
#include "core/redact.hpp"
#include "proto/codec.hpp"

namespace driftd::admin {

using core::Value;

namespace {

Value flag(bool value) { return Value(value); }
Value word(std::string_view text) { return Value(std::string(text)); }

Value map_of(const std::map<std::string, std::string>& texts) {
  Value::Object out;
  for (const auto& [key, text] : texts) out.emplace(key, text);
  return out;
}

Value counts(const std::map<std::string, std::uint64_t>& all) {
  Value::Object out;
  for (const auto& [name, count] : all) out.emplace(name, number(static_cast<std::int64_t>(count)));
  return out;
}

Value worker(const core::WorkerStatus& status) {
  return Value::Object{{"state", status.state},
                       {"last_exit", status.last_exit},
                       {"pid", number(status.pid)},
                       {"restarts", number(static_cast<std::int64_t>(status.restarts))},
                       {"rss_bytes", number(status.rss_bytes)},
                       {"file", status.file},
                       {"version", status.version},
                       {"crashes", number(static_cast<std::int64_t>(status.crashes))},
                       {"parked_until", time(status.parked_until_ns)},
                       {"misuses", counts(status.misuses)},
                       {"last_misuse", status.last_misuse},
                       {"denied_secrets", number(static_cast<std::int64_t>(status.denied_secrets))},
                       {"budget_hits", counts(status.budget_hits)},
                       {"last_budget_hit", status.last_budget_hit},
                       {"last_failure", status.last_failure},
                       {"jail", status.jail},
                       {"secret_fault", status.secret_fault},
                       {"upgrade_refused", status.upgrade_refused}};
}

Value parsed(const std::string& json) {
  auto value = core::parse(json);
  return value ? std::move(*value) : Value();
}

Value health(const core::HealthReport& report, const std::string& reason) {
  return Value::Object{{"state", word(core::render(report.state))},
                       {"reason", reason.empty() ? report.reason : reason},
                       {"role", report.role},
                       {"latency_us", number(report.latency_us)},
                       {"server_version", report.server_version},
                       {"system_identity", report.system_identity}};
}

/// Replaces digests by [REDACTED], in place, because a copy of a large body would waste memory.
void redact_in_place(Value& value) {
  if (core::as_digest(value)) {
    value = "[REDACTED]";
  } else if (auto* object = value.object()) {
    for (auto& [name, member] : *object) redact_in_place(member);
  } else if (auto* array = value.array()) {
    for (auto& element : *array) redact_in_place(element);
  }
}

}  // namespace

Value number(std::int64_t value) { return Value::Number{std::to_string(value)}; }

Value time(Nanos at) { return at == 0 ? Value() : Value(render_time(at)); }

Value shown(const std::optional<std::string>& json) {
  if (!json) return {};
  auto value = core::parse(*json);
  if (!value) return "[REDACTED]";
  redact_in_place(*value);
  return std::move(*value);
}

Value list_of(const std::vector<std::string>& texts) {
  Value::Array out;
  for (const auto& text : texts) out.emplace_back(text);
  return out;
}

Value to_json(const core::Coverage& coverage) {
  return Value::Object{{"kind", coverage.kind},
                       {"state", word(core::coverage_state(coverage))},
                       {"established", flag(coverage.established)},
                       {"complete", flag(coverage.complete)},
                       {"resources", number(coverage.resources)},
                       {"unknown", number(coverage.unknown)},
                       {"reasons", list_of(coverage.reasons)}};
}

Value to_json(const core::BackendView& backend) {
  return Value::Object{{"uid", backend.uid},
                       {"name", backend.name},
                       {"type", backend.type},
                       {"provider", backend.provider},
                       {"endpoint", backend.endpoint},
                       {"source", backend.source},
                       {"defined_at", backend.defined_at},
                       {"labels", map_of(backend.labels)},
                       {"patterns", list_of(backend.patterns)},
                       {"state", backend.state},
                       {"health", health(backend.health, backend.health_reason)},
                       {"worker", worker(backend.worker)},
                       {"coverage", list_of(backend.coverage)},
                       {"resources", number(backend.resources)},
                       {"open_drifts", number(backend.open_drifts)},
                       {"cycles", number(static_cast<std::int64_t>(backend.cycles))},
                       {"failures", number(static_cast<std::int64_t>(backend.failures))},
                       {"last_complete", time(backend.last_complete_ns)},
                       {"next", time(backend.next_ns)},
                       {"last_error", backend.last_error},
                       {"interval_ms", number(backend.interval_ms)},
                       {"achievable_ms", number(backend.achievable_ms)}};
}

Value to_json(const core::SinkView& sink) {
  return Value::Object{{"name", sink.name},
                       {"type", sink.type},
                       {"state", sink.state},
                       {"low_water", number(sink.low_water)},
                       {"in_flight", number(sink.in_flight)},
                       {"retrying", number(sink.retrying)},
                       {"dead", number(sink.dead)},
                       {"delivered", number(sink.delivered)},
                       {"waiting", number(sink.waiting)},
                       {"stalled_seconds", number(static_cast<std::int64_t>(sink.stalled_seconds))},
                       {"missed_wakeups", number(static_cast<std::int64_t>(sink.missed_wakeups))},
                       {"paused_until", time(sink.paused_until_ns)},
                       {"last_error", sink.last_error}};
}

Value to_json(const core::ChangeLogView& log) {
  if (!log.on) return Value::Object{{"on", Value(false)}};
  return Value::Object{{"on", Value(true)},
                       {"destination", log.destination},
                       {"state", log.state},
                       {"failing", flag(log.failing)},
                       {"waiting", number(log.waiting)},
                       {"oldest", time(log.oldest_ns)},
                       {"sent", number(log.sent)},
                       {"failures", number(log.failures)},
                       {"refused", number(log.refused)},
                       {"dropped", number(log.dropped)}};
}

Value to_json(const core::AgentView& view) {
  return Value::Object{{"name", view.name},
                       {"cluster", view.cluster},
                       {"version", view.version},
                       {"started", time(view.started_ns)},
                       {"ready", flag(view.ready)},
                       {"not_ready_reason", view.not_ready_reason},
                       {"backends", list_of(view.backends)},
                       {"sinks", list_of(view.sinks)},
                       {"backlog_events", number(view.backlog_events)},
                       {"backlog_bytes", number(view.backlog_bytes)},
                       {"store_bytes", number(view.store_bytes)},
                       {"store_max_bytes", number(view.store_max_bytes)},
                       {"change_log", to_json(view.change_log)},
                       {"needs_restart", list_of(view.needs_restart)}};
}

Value to_json(const core::PendingRestart& setting) {
  return Value::Object{{"setting", setting.what}, {"where", setting.where}};
}

Value to_json(const core::Control::ReloadReport& reloaded) {
  Value::Array applied;
  for (const auto& what : reloaded.applied) applied.emplace_back(what);
  return Value::Object{{"reloaded", Value(true)},
                       {"applied", Value(std::move(applied))},
                       {"needs_restart", list_of(reloaded.needs_restart)}};
}

Value to_json(const core::StoredEvent& event) {
  Value payload;
  if (const auto text = proto::to_json(event)) {
    if (auto parsed = core::parse(*text)) payload = std::move(*parsed);
  }
  return Value::Object{{"seq", number(event.stamp.seq)},
                       {"id", event.stamp.id},
                       {"sequence", number(static_cast<std::int64_t>(event.stamp.sequence))},
                       {"incarnation", number(static_cast<std::int64_t>(event.stamp.incarnation))},
                       {"recorded", time(event.stamp.recorded_ns)},
                       {"subject", core::subject_of(event)},
                       {"backend", event.backend},
                       {"what", event.what},
                       {"resource", event.resource},
                       {"change_type", word(core::render(event.type))},
                       {"agent_event", flag(event.agent_event)},
                       {"event", std::move(payload)}};
}

Value to_json(const core::DeadLetter& letter) {
  return Value::Object{{"sink", letter.sink},
                       {"attempts", number(letter.attempts)},
                       {"error", letter.error},
                       {"seq", number(letter.event.stamp.seq)},
                       {"event", to_json(letter.event)}};
}

Value to_json(const core::SinkTotals& totals) {
  Value::Object dropped_by;
  for (const auto& [reason, count] : totals.dropped_by) dropped_by.emplace(reason, number(count));
  return Value::Object{{"sink", totals.sink},
                       {"emitted", number(totals.emitted)},
                       {"acked", number(totals.acked)},
                       {"pending", number(totals.pending)},
                       {"dead", number(totals.dead)},
                       {"dropped", number(totals.dropped)},
                       {"dropped_by", Value(std::move(dropped_by))}};
}

Value to_json(const core::AuditRow& row) { return core::audit_json(row); }

Value to_json(const core::AuditProof& proof) {
  return Value::Object{{"whole", flag(proof.whole)},
                       {"broken", proof.broken},
                       {"unchecked", proof.unchecked},
                       {"lines", number(proof.lines)},
                       {"unchained", number(proof.unchained)},
                       {"anchor", Value::Object{{"id", number(proof.anchor_id)}, {"hash", proof.anchor_hash}}},
                       {"head", Value::Object{{"id", number(proof.head_id)}, {"hash", proof.head_hash}}}};
}

Value to_json(const core::Step& step) {
  const auto side = [](const std::string& json) { return json.empty() ? Value() : shown(json); };
  return Value::Object{{"path", step.path},
                       {"old", side(step.old_raw)},
                       {"new", side(step.new_raw)},
                       {"old_normal", side(step.old_norm)},
                       {"new_normal", side(step.new_norm)},
                       {"rule", step.rule},
                       {"verdict", step.verdict},
                       {"reason", step.reason}};
}

Value to_json(const core::Control::BackendRefresh& refreshed) {
  Value::Object out{{"backend", refreshed.backend},
                    {"ok", flag(refreshed.status.has_value())},
                    {"coverage", list_of(refreshed.coverage)}};
  if (!refreshed.status) {
    out.emplace("error", Value::Object{{"code", word(render(refreshed.status.error().code))},
                                       {"message", refreshed.status.error().message}});
  }
  return out;
}

Value to_json(const core::SessionFactory::ScanResult& found) {
  Value::Array uses;
  for (const auto& use : found.used_by) {
    uses.push_back(Value::Object{{"backend", use.backend}, {"worker", worker(use.worker)}});
  }
  Value::Object out{{"file", found.file}, {"ok", flag(found.info.has_value())}, {"sha256", found.sha256},
                    {"pin", found.pin},   {"gone", flag(found.gone)},           {"used_by", std::move(uses)}};
  if (!found.info) {
    out.emplace("error", found.info.error().message);
    return out;
  }
  const core::ProviderInfo& info = **found.info;
  out.emplace("id", info.id);
  out.emplace("version", info.version);
  out.emplace("types", list_of(info.types));
  out.emplace("kinds", list_of(info.kinds));
  out.emplace("watch", flag(info.has_watch));
  if (info.sink) out.emplace("sink", flag(true));  // which has neither types nor kinds
  return out;
}

Value described(const core::SessionFactory::ScanResult& found) {
  Value out = to_json(found);
  if (!found.info) return out;
  const core::ProviderInfo& info = **found.info;
  Value::Object whole = *out.object();
  const Value describe = parsed(info.describe);
  for (const char* member : {"extensions", "metrics"}) {
    const Value* value = describe.find(member);
    whole[member] = value != nullptr ? *value : Value(Value::Array());
  }
  whole["concurrency"] = number(info.concurrency);
  whole["diff"] = flag(info.has_diff);
  whole["settings"] = parsed(info.settings_schema);
  Value::Object kinds;
  for (const auto& [kind, text] : info.schema_texts) kinds.emplace(kind, parsed(text));
  whole["kinds"] = Value(std::move(kinds));
  return Value(std::move(whole));
}

Value to_json(const PrometheusMetrics::Judged& judged) {
  std::int64_t observed = judged.drafted;
  Value::Object suppressed;
  for (const auto& [reason, count] : judged.suppressed) {
    observed += count;
    suppressed[reason] = number(count);
  }
  return Value::Object{{"observed", number(observed)},
                       {"emitted", number(judged.published)},
                       {"withdrawn", number(judged.withdrawn)},
                       {"in_commit", number(judged.in_commit)},
                       {"suppressed", Value(std::move(suppressed))}};
}

}  // namespace driftd::admin
