// SPDX-License-Identifier: Apache-2.0
// Copies of a store that are whole, and the way back. Blocks.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "store/keys.hpp"

namespace driftd::store {

/// What a copy holds.
struct Content {
  std::int64_t backends = 0, resources = 0, open_drifts = 0, events = 0;
  std::int64_t newest_event = 0;
  Nanos newest_ns = 0;  ///< 0: it holds no event
  std::string key_ids;  ///< of the installation.key that belongs to it
};

/// Reads all of a store that nobody writes: structure, checksums, version. `corrupt` names what is wrong; `conflict`:
/// of a newer driftd; `not_found`: no such file.
Result<Content> verify(const std::filesystem::path& file);

/// Ids of the key that a store names, also beside a running agent; empty: it names none.
Result<std::string> key_ids_in(const std::filesystem::path& file);

struct Backup {
  std::filesystem::path file, key_file;  ///< key_file: empty, or the copy of installation.key
  Content content;
};
/// Copies the store of `data_dir`, also beside a running agent, into one file of mode 0600, verified before it gets its
/// name. `to`: a file, or a folder that gets `driftd-<time>.db`. An older backup of that name is replaced; any other
/// file is a `conflict`. `with_key`: copies installation.key to `<file>.key` too; who has both can try guesses of short
/// secrets.
Result<Backup> back_up(const std::filesystem::path& data_dir, const std::filesystem::path& to, bool with_key,
                       Nanos now);

struct Restored {
  std::filesystem::path kept;  ///< the former store.db; empty: there was none
  Content content;
};
/// Verifies `from` and puts it in place of the store of `data_dir`, which is kept beside it. The next start begins a
/// new incarnation. `key`: the installation.key to use; empty: `<from>.key`, or the one of data_dir. `conflict`: an
/// agent runs on data_dir, or the key belongs to another store. Until all is verified nothing is changed.
Result<Restored> restore(const std::filesystem::path& data_dir, const std::filesystem::path& from,
                         const std::filesystem::path& key, Nanos now);
/// The same where the key does not lie in data_dir: none is put there and none is taken away. Without `given` whether
/// the store fits its key shows when the agent starts.
Result<Restored> restore_without_key(const std::filesystem::path& data_dir, const std::filesystem::path& from,
                                     const std::optional<GivenKey>& given, Nanos now);

}  // namespace driftd::store
