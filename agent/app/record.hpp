// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "config/config.hpp"
#include "store/sqlite_store.hpp"

namespace driftd::app {

/// Writes everything in the store as JSON lines (docs/formats.md, driftd-record/2), sensitive values as keyed digests:
/// it compares only on the installation that made it. 0600; whole or not at all.
Task<Status> save_record(std::string file, store::SqliteStore& store);

/// `invalid` with the next step where a record must not be written: in data_dir, or over a file that is none.
Status check_record(const std::string& file, const std::string& data_dir);

/// Fills an empty store with the baselines of a record, under the names of the configured backends. `corrupt`: no
/// record, or one that was cut; `conflict`: made under another installation key.
Task<Status> load_record(std::string file, const config::Config& config, store::SqliteStore& store);

/// Where driftd-provider-host is: as configured, or beside this binary.
std::string worker_path(const config::Config& config);
/// `invalid` where no plugin should be started: others may write the worker or a folder above it (it is the worker that
/// enters the jail), or `agent.jail` is required and this system has no whole one, or a backend is to run outside of
/// it.
Status check_workers(const config::Config& config);

}  // namespace driftd::app
