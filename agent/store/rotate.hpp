// SPDX-License-Identifier: Apache-2.0
// The key of a store and its rotation (ADR 0014): a digest cannot be made anew, for nobody has its value, so a rotation
// puts a layer around all that are stored. Blocks.
#pragma once

#include "core/audit.hpp"
#include "store/slow_layer.hpp"
#include "store/state.hpp"

namespace driftd::store {

/// Whether the store names fewer layers than `key` has: a rotation is to be finished. Fills `key.rotations`. A store
/// that names no key takes this one. `conflict`: the key is of another store, or of before a rotation.
Result<bool> check_key(Connection& db, const std::string& key_name, InstallationKey& key);

/// Puts the layers that the store lacks around every digest in it, in one transaction with `line`, what it names as its
/// key and, before the commit, `last`. `state.key` is the key with all layers. An error: nothing of it stands. Then
/// sweep(). `say`: hears before that what a slow layer costs.
Status finish_rotation(SqliteStore::State& state, core::AuditEntry line, const Work& last = {},
                       const SaySlowWork& say = {});
/// In a transaction: pages hold, or held, what sweep() is to overwrite.
Status leave_unswept(Connection& db);
/// Overwrites what the file still holds of pages of before a rotation. An error: the next start tries again.
Status sweep(SqliteStore::State& state);

struct Rotated {
  std::string key_ids;
  std::size_t layers = 0;
  std::vector<std::filesystem::path> former;  ///< files in data_dir that a former key still opens
  std::string unswept;  ///< why store.db still holds digests under the former key in unused pages; empty: it does not
};
/// `driftd key rotate` where the key lies in data_dir: opens the store, rewrites it, writes the key with the next
/// layer, commits. An error leaves key and store as they were, a kill between the last two what the next start
/// finishes. `line`: who asked, and why. `conflict`: an agent runs. `kind`: of the next layer; `conflict`, too, when a
/// second slow one is asked for.
Result<Rotated> rotate(Settings settings, core::AuditEntry line, const Clock& clock,
                       core::LayerKind kind = core::LayerKind::hmac, const SaySlowWork& say = {});

}  // namespace driftd::store
