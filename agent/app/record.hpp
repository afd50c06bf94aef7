// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "config/config.hpp"
#include "store/sqlite_store.hpp"

namespace driftd::app {

/// Writes everything in the store as JSON lines (docs/formats.md, driftd-record/2), sensitive values as keyed digests:
/// the record compares only on the installation that made it. The file has mode 0600 and is written completely or not
/// at all.
Task<Status> save_record(std::string file, store::SqliteStore& store);

/// Returns `invalid`, with the next step, if a record must not be written to this file: it lies in data_dir, or is an
/// existing file that is not a record.
Status check_record(const std::string& file, const std::string& data_dir);

/// Fills an empty store with the baselines of a record, under the names of the configured backends. Returns `corrupt`
/// if the file is not a record or was truncated, `conflict` if it was made under another installation key.
Task<Status> load_record(std::string file, const config::Config& config, store::SqliteStore& store);

/// Returns the path of driftd-provider-host: as configured, or beside this binary.
std::string worker_path(const config::Config& config);
/// Returns `invalid` if no plugin should be started: others may write the worker or a folder above it (the worker
/// itself enters the jail); or `agent.jail` is required and this system has no complete one, or a backend is to run
/// outside of it.
Status check_workers(const config::Config& config);

}  // namespace driftd::app
