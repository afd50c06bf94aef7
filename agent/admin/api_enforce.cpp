// SPDX-License-Identifier: Apache-2.0
// Requests about enforcement: what is held and why, the operations, and what people ask for.
#include "admin/fields.hpp"
#include "admin/json.hpp"
#include "admin/query.hpp"
#include "core/redact.hpp"

namespace driftd::admin {
namespace {

using core::Value;
using Answer = Result<Value>;

Value time_or_null(const std::optional<Nanos>& at) { return at ? Value(render_time(*at)) : Value(nullptr); }

Value embedded(const std::string& json) {
  auto value = core::parse(json.empty() ? "null" : json);
  return value ? std::move(*value) : Value(nullptr);
}

Value changes_of(const core::Enforcement& operation) {
  Value::Array out;
  for (const auto& change : operation.changes) {
    Value::Object one{{"path", change.path}};
    if (change.old_value) one.emplace("found", embedded(core::presentable_json(*change.old_value)));
    if (change.new_value) one.emplace("put_back", embedded(core::presentable_json(*change.new_value)));
    out.emplace_back(std::move(one));
  }
  return out;
}

Value hold_json(const core::Hold& hold) {
  return Value::Object{
      {"reason", std::string(core::render(hold.reason))}, {"text", hold.text}, {"until", time_or_null(hold.until)}};
}

Value backend_json(const core::EnforcementView::Backend& backend) {
  Value::Object held;
  for (const auto& [drift, hold] : backend.held) held.emplace(drift, hold_json(hold));
  Value::Array stopped;
  for (const auto& stop : backend.stopped) {
    stopped.emplace_back(Value::Object{{"resource", render(stop.resource)},
                                       {"reason", stop.reason},
                                       {"actor", stop.actor},
                                       {"at", render_time(stop.at_ns)}});
  }
  Value::Object ended;
  for (const auto& [state, count] : backend.ended) ended.emplace(state, number(static_cast<std::int64_t>(count)));
  Value::Array windows;
  for (const auto& window : backend.settings.windows) windows.emplace_back(window.text);
  return Value::Object{{"name", backend.name},
                       {"allowed", Value(backend.settings.allowed())},
                       {"minimum_age_seconds", number(backend.settings.minimum_age.count())},
                       {"per_cycle", number(backend.settings.per_cycle)},
                       {"per_hour", number(backend.settings.per_hour)},
                       {"windows", Value(std::move(windows))},
                       {"held", Value(std::move(held))},
                       {"stopped", Value(std::move(stopped))},
                       {"open", list_of(backend.open)},
                       {"ended", Value(std::move(ended))}};
}

}  // namespace

Value to_json(const core::Enforcement& one) {
  return Value::Object{{"id", one.id},
                       {"backend", one.backend},
                       {"resource", render(one.resource)},
                       {"external_name", one.external_name},
                       {"drift", one.drift_id},
                       {"state", std::string(core::render(one.state))},
                       {"cause", std::string(core::render(one.cause))},
                       {"actor", one.actor},
                       {"reason", one.reason},
                       {"changes", changes_of(one)},
                       {"commands", list_of(one.commands)},
                       {"undo", list_of(one.undo)},
                       {"text", one.text},
                       {"writer", one.writer},
                       {"provider", one.provider},
                       {"provider_version", one.provider_version},
                       {"trace_id", one.trace_id},
                       {"attempts", number(one.attempts)},
                       {"planned", render_time(one.planned_ns)},
                       {"updated", render_time(one.updated_ns)},
                       {"ended", time_or_null(one.ended_ns)},
                       {"retry", time_or_null(one.retry_ns)},
                       {"desired", embedded(one.desired)},
                       {"observed", embedded(one.observed)}};
}

std::map<std::string, Value> Api::holds() {
  std::map<std::string, Value> out;
  for (const auto& backend : deps_.control.enforcement().backends) {
    for (const auto& [drift, hold] : backend.held) out.emplace(drift, hold_json(hold));
  }
  return out;
}

/// What holds the drifts of one resource. Empty if nothing does, or if their policy would not put them back.
Value Api::holds_of(const std::string& backend, const core::ResourceId& resource) {
  Value::Array out;
  for (const auto& one : deps_.control.enforcement().backends) {
    if (one.name != backend) continue;
    for (const auto& [drift, hold] : one.held) {
      if (hold.resource != resource) continue;
      Value shown = hold_json(hold);
      shown.object()->emplace("drift", drift);
      out.push_back(std::move(shown));
    }
  }
  return out;
}

Value Api::enforcement() {
  const core::EnforcementView view = deps_.control.enforcement();
  Value::Array backends;
  for (const auto& backend : view.backends) backends.push_back(backend_json(backend));
  return Value::Object{{"off", view.off}, {"backends", Value(std::move(backends))}};
}

Task<Answer> Api::operations(Request request) {
  core::EnforcementFilter filter;
  filter.backend = query_parameter(request, "backend");
  filter.about = query_parameter(request, "about");
  filter.state = query_parameter(request, "state");
  if (!filter.state.empty()) DRIFTD_CO_CHECK(core::parse_enforcement_state(filter.state));
  DRIFTD_CO_TRY(const auto limit, parse_number("limit", query_parameter(request, "limit"), 100, 1, 10'000));
  filter.limit = static_cast<int>(limit);
  const auto rows = co_await deps_.reader.enforcements(std::move(filter));
  if (!rows) co_return fail(rows.error());
  co_return Value::Object{{"operations", list_of(*rows)}};
}

Task<Answer> Api::enforce(std::string verb, std::string drift_id, Request request) {
  DRIFTD_CO_TRY(Fields fields, Fields::parse(request.body));
  core::Asked asked{request.actor, fields.reason(), request.caller, SystemClock().wall()};
  if (verb == "enforce") {
    std::string digest = fields.text("digest");
    const bool dry_run = fields.flag("dry_run");
    DRIFTD_CO_CHECK(fields.check());
    if (digest.empty()) {
      co_return fail(Code::invalid,
                     "'digest' is missing: send the digest of the drift as GET /v1/drifts shows it, so "
                     "that you put back the value that you saw");
    }
    const auto done = co_await deps_.control.enforce(std::move(drift_id), std::move(digest), dry_run, std::move(asked));
    if (!done) co_return fail(done.error());
    co_return Value::Object{{"operation", to_json(*done)}, {"dry_run", Value(dry_run)}};
  }
  DRIFTD_CO_CHECK(fields.check());
  Status done;
  if (verb == "resume")
    done = co_await deps_.control.lift_stop(std::move(drift_id), std::move(asked));
  else
    done = co_await deps_.control.switch_enforcement(verb == "on", std::move(asked));
  if (!done) co_return fail(done.error());
  co_return enforcement();
}

}  // namespace driftd::admin
