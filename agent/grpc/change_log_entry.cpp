// SPDX-License-Identifier: Apache-2.0
#include "grpc/change_log_entry.hpp"

namespace driftd::rpc {
namespace {

std::string joined(const std::vector<std::string>& texts, const char* between) {
  std::string out;
  for (const auto& text : texts) out += (out.empty() ? "" : between) + text;
  return out;
}

std::string paths_of(const core::Enforcement& operation) {
  std::vector<std::string> out;
  for (const auto& change : operation.changes) out.push_back(change.path);
  return joined(out, ", ");
}

/// What the entry has beside the fields that every provider has. Empty values are left out.
void add_details(const core::ChangeEntry& entry, changelog::v1::ChangeLogEntry& to) {
  const core::Enforcement& one = entry.operation;
  const std::pair<const char*, std::string> details[] = {{"drift", one.drift_id},
                                                         {"paths", paths_of(one)},
                                                         {"cause", std::string(core::render(one.cause))},
                                                         {"actor", one.actor},
                                                         {"reason", one.reason},
                                                         {"writer", one.writer},
                                                         {"planned_at", render_time(one.planned_ns)},
                                                         {"attempts", std::to_string(one.attempts)},
                                                         {"commands", joined(one.commands, "\n")},
                                                         {"damage", entry.damage}};
  auto& map = *to.mutable_details();
  for (const auto& [name, value] : details) {
    if (!value.empty()) map[name] = value;
  }
}

}  // namespace

changelog::v1::ChangeLogEntry make_entry(const core::ChangeEntry& entry) {
  const core::Enforcement& one = entry.operation;
  changelog::v1::ChangeLogEntry out;
  out.set_operation_id(one.id);
  out.set_sequence(entry.sequence);
  out.set_timestamp_ns(one.ended_ns.value_or(one.updated_ns));
  out.set_backend(one.backend);
  out.set_provider(one.provider + (one.provider_version.empty() ? "" : ":" + one.provider_version));
  out.set_api_version(one.api_version);
  out.set_kind(one.resource.kind);
  out.set_name(one.resource.id);
  out.set_external_name(one.external_name);
  out.set_operation(changelog::v1::OPERATION_TYPE_UPDATE);  // an enforcement neither creates nor deletes
  if (entry.bare) {
    out.set_omitted(entry.why_bare);
  } else {
    out.set_desired(one.desired);
    out.set_observed(one.observed);
  }
  if (one.state != core::EnforcementState::done) {
    out.mutable_error()->set_code(std::string(core::render(one.state)));
    out.mutable_error()->set_message(one.text);
  }
  out.set_digest(one.digest);
  out.set_trace_id(one.trace_id);
  add_details(entry, out);
  return out;
}

}  // namespace driftd::rpc
