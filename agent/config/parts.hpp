// SPDX-License-Identifier: Apache-2.0
// The parts of the file, one reader each; load.cpp puts them together.
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

/// `defaults:`, which every backend starts from.
struct Defaults {
  std::chrono::milliseconds interval{30'000};
  core::SessionSpec::Isolation isolation = core::SessionSpec::Isolation::process;
  core::Budgets budgets;
  core::Rules rules;  ///< not hashed yet
  std::vector<core::RedactRule> redact;
};

Agent read_agent(Section section, const LoadOptions& options);
Admin read_admin(Section section);
log::Settings read_log(Section section);
Metrics read_metrics(Section section);
Retention read_retention(Section section);
Delivery read_delivery(Section section);

Defaults read_defaults(Section section);
/// `backends:`; fills Config::backends and backend_settings_at.
void read_backends(Section& root, const Defaults& defaults, const LoadOptions& options, Config& config);
/// `spoken_by` of one backend; and, once all are read, whether there are such sources, by the names that they have
/// here.
std::vector<core::Registrar> read_speakers(Section& backend);
void resolve_speakers(Report& report, const std::vector<const Node*>& items, const std::set<std::string>& names,
                      Config& config);
void read_sinks(Section& root, const LoadOptions& options, Config& config);
/// `routes:`, after backends and sinks: they are looked up.
void read_routes(Section& root, Config& config);

/// Adds `policy`, `ignore` and (of a backend) `expect` of a section to rules. Earlier rules win, so a backend's own are
/// put before those of the defaults.
void read_rules(Section& section, core::Rules& rules, bool with_expectations);
/// Rules::generation from everything else in it but places.
std::uint64_t generation_of(const core::Rules& rules);

/// Absolute; a relative path starts at the folder of the config file.
std::string beside_config(const Report& report, const std::string& path);
core::Budgets read_budgets(Section section, core::Budgets from);
core::SessionSpec::Isolation read_isolation(Section& section, core::SessionSpec::Isolation fallback);

}  // namespace driftd::config
