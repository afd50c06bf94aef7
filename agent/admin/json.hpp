// SPDX-License-Identifier: Apache-2.0
// What the API shows, as JSON values (docs/api.md). Every body, change and status passes presentable_json()
// (redact.hpp) or presentable_text() (presentable_text.hpp) first.
#pragma once

#include <cstdint>
#include <string>

#include "admin/metrics.hpp"
#include "core/ports/control.hpp"
#include "core/ports/reader.hpp"
#include "core/ports/session.hpp"
#include "core/value/value.hpp"

namespace driftd::admin {

/// Returns a JSON number with all digits, not a floating-point value.
core::Value number(std::int64_t value);
/// Returns an RFC 3339 time, or null for 0.
core::Value time(Nanos at);
/// Returns the redacted JSON of a stored text, or null if it is absent.
/// Digests of secrets become `[REDACTED]`, as does a text that is not valid JSON.
core::Value shown(const std::optional<std::string>& json);

/// How much a row shows of its values. `brief` cuts values of more than 16 KiB around their difference; a row
/// shows changes until 64 KiB are used, and `changes_total` says how many there are (docs/api.md).
enum class Depth { brief, whole };

/// The member names of each are the public ones of docs/api.md. A time that is not set is null.
core::Value to_json(const core::AgentView& view);
core::Value to_json(const core::BackendView& backend);
core::Value to_json(const core::SinkView& sink);
core::Value to_json(const core::ChangeLogView& log);
core::Value to_json(const core::Coverage& coverage);
core::Value to_json(const core::DriftRow& row);
core::Value to_json(const core::Drift& drift, Depth depth = Depth::whole);
core::Value to_json(const core::ResourceRow& row, Depth depth = Depth::whole);
core::Value to_json(const core::StoredEvent& event);  ///< with the decoded payload as member `event`
core::Value to_json(const core::DeadLetter& letter);
core::Value to_json(const core::SinkTotals& totals);
core::Value to_json(const PrometheusMetrics::Judged& judged);
core::Value to_json(const core::AuditRow& row);
core::Value to_json(const core::AuditProof& proof);
core::Value to_json(const core::Enforcement& operation);
core::Value to_json(const core::Step& step);
core::Value to_json(const core::Diagnostic& diagnostic);
core::Value to_json(const core::Discovered& backend);
core::Value to_json(const core::DiscoverOutcome& outcome);
core::Value to_json(const core::Control::BackendRefresh& refreshed);
core::Value to_json(const core::Control::ReloadReport& reloaded);
core::Value to_json(const core::PendingRestart& setting);
core::Value to_json(const core::SessionFactory::ScanResult& found);
/// Returns what to_json() returns, and everything that the plugin describes: settings schema, kinds with their schemas,
/// extensions, metrics.
core::Value described(const core::SessionFactory::ScanResult& found);

template <class T>
core::Value list_of(const std::vector<T>& all) {  ///< a JSON array
  core::Value::Array out;
  for (const auto& one : all) out.push_back(to_json(one));
  return out;
}
core::Value list_of(const std::vector<std::string>& texts);

}  // namespace driftd::admin
