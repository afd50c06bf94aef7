// SPDX-License-Identifier: Apache-2.0
// Complete copies of a store, and restoring them. Blocks.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "store/keys.hpp"
#include "store/sqlite.hpp"

namespace driftd::store {

/// The content of a copy.
struct Content {
  std::int64_t backends = 0, resources = 0, open_drifts = 0, events = 0;
  std::int64_t newest_event = 0;
  Nanos newest_ns = 0;  ///< 0 if it has no event
  std::string key_ids;  ///< of the installation.key that belongs to it
};

/// Reads a complete store that nobody writes: structure, checksums, version. Returns `corrupt` with what is wrong,
/// `conflict` if a newer driftd wrote it, `not_found` if there is no such file.
Result<Content> verify(const std::filesystem::path& file);

/// Opens the file of a store or backup for reading, also beside a running agent. `not_found`, or `invalid` if it is not
/// a file.
Result<std::unique_ptr<Connection>> open_reading(const std::filesystem::path& file);

/// Returns the ids of the key that a store names, also beside a running agent. Empty if it names none.
Result<std::string> key_ids_in(const std::filesystem::path& file);

struct Backup {
  std::filesystem::path file, key_file;  ///< key_file: empty, or the copy of installation.key
  Content content;
};
/// Copies the store of `data_dir`, also beside a running agent, into one file of mode 0600, which gets its name after
/// it was verified. `to`: a file, or a folder that gets `driftd-<time>.db`. An older backup of that name is replaced;
/// any other file is a `conflict`. `with_key`: also copies installation.key to `<file>.key`; somebody who has both can
/// test guesses of short secrets.
Result<Backup> back_up(const std::filesystem::path& data_dir, const std::filesystem::path& to, bool with_key,
                       Nanos now);

struct Restored {
  std::filesystem::path kept;  ///< the former store.db; empty if there was none
  Content content;
};
/// Verifies `from` and replaces the store of `data_dir` by it; the former store is kept beside it. The next start
/// begins a new incarnation. `key`: the installation.key to use; empty: `<from>.key`, or the one of data_dir. Returns
/// `conflict` if an agent runs on data_dir, or if the key belongs to another store. Changes nothing until everything is
/// verified.
Result<Restored> restore(const std::filesystem::path& data_dir, const std::filesystem::path& from,
                         const std::filesystem::path& key, Nanos now);
/// Does the same if the key is kept outside of data_dir: no key is written there or removed. Without `given`, the start
/// of the agent will check whether the key fits.
Result<Restored> restore_without_key(const std::filesystem::path& data_dir, const std::filesystem::path& from,
                                     const std::optional<GivenKey>& given, Nanos now);

}  // namespace driftd::store
