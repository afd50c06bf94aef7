// SPDX-License-Identifier: Apache-2.0
// One reader for each part of the file. load.cpp calls them.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "config/config.hpp"
#include "config/section.hpp"
#include "core/judge/rules.hpp"

namespace driftd::config {

/// `defaults:`, the initial values of every backend.
struct Defaults {
  std::chrono::milliseconds interval{30'000};
  core::SessionSpec::Isolation isolation = core::SessionSpec::Isolation::process;
  core::Budgets budgets;
  core::Rules rules;  ///< without their generation hash
  std::vector<core::RedactRule> redact;
  core::EnforceSettings enforce;
};

Agent read_agent(Section section, const LoadOptions& options);
Admin read_admin(Section section);
rpc::Settings read_grpc(Section section, const LoadOptions& options);
ChangeLog read_change_log(Section section, const LoadOptions& options);
log::Settings read_log(Section section);
Metrics read_metrics(Section section);
Retention read_retention(Section section);
Enforce read_enforce(Section section, const Agent& agent);
core::EnforceSettings read_backend_enforce(Section& backend, core::EnforceSettings from);
Delivery read_delivery(Section section);
core::NotifySettings read_notifications(Section section);
/// Checks the sinks that `notifications.links` names. Must come after sinks.
void check_links(Section& root, const Config& config);

Defaults read_defaults(Section section);
/// Reads `backends:` into Config::backends and backend_settings_at.
void read_backends(Section& root, const Defaults& defaults, const LoadOptions& options, Config& config);
/// Reads one item of `backends:`. `here` is set to whether this agent runs it; then Config has the programs and files
/// that it names, and the position of its settings.
core::BackendSpec read_backend(Section section, const Defaults& defaults, const LoadOptions& options, Config& config,
                               bool& here);
/// Reads `spoken_by` of one backend. Once all backends are read, resolve_registrars() reports sources that do not exist
/// and replaces the others by their names on this node.
std::vector<core::Registrar> read_registrars(Section& backend);
void resolve_registrars(Report& report, const std::vector<const Node*>& items, const std::set<std::string>& names,
                        Config& config);
void read_sinks(Section& root, const LoadOptions& options, Config& config);
/// Reads `routes:`. Must come after backends and sinks, whose names it looks up.
void read_routes(Section& root, Config& config);

/// Reads `resolve:`. Must come after `grpc` and the backends, whose names it looks up.
Resolve read_resolve(Section section, const Config& config);

/// Adds `policy`, `ignore` and (for a backend) `expect` of a section to `rules`. Earlier rules win, so a backend's own
/// rules go before those of the defaults.
void read_rules(Section& section, core::Rules& rules, bool with_expectations);
/// Returns the hash for Rules::generation. It covers everything except positions.
std::uint64_t generation_of(const core::Rules& rules);

/// Returns true for `127.0.0.1:7480`, `localhost:7480` and `[::1]:7480`. Port 0 means any free port.
bool listens_on_loopback(const std::string& listen);

/// Returns an absolute path. A relative one starts at the folder of the config file.
std::string beside_config(const Report& report, const std::string& path);
core::Budgets read_budgets(Section section, core::Budgets from);
core::SessionSpec::Isolation read_isolation(Section& section, core::SessionSpec::Isolation fallback);

}  // namespace driftd::config
