// SPDX-License-Identifier: Apache-2.0
// The key of a store and its rotation (ADR 0014). Digests cannot be computed again, because nobody has their values, so
// a rotation adds a layer around all stored ones. Blocks.
#pragma once

#include "core/audit.hpp"
#include "store/slow_layer.hpp"
#include "store/state.hpp"

namespace driftd::store {

/// Returns true if the store names fewer layers than `key` has, so that a rotation must be finished. Fills
/// `key.rotations`. A store that names no key adopts this one. Returns `conflict` if the key belongs to another store,
/// or is older than a rotation of this one.
Result<bool> check_key(Connection& db, const std::string& key_name, InstallationKey& key);

/// Adds the missing layers to every digest of the store, in one transaction with the audit line `line`, the key ids of
/// the store and, before the commit, `last`. `state.key` is the key with all layers. Changes nothing on an error. To be
/// followed by sweep(). `report` is called before it with the cost of a slow layer.
Status finish_rotation(SqliteStore::State& state, core::AuditEntry line, const Work& last = {},
                       const ReportSlowWork& report = {});
/// Notes that pages hold, or held, what sweep() must overwrite. To be called in a transaction.
Status leave_unswept(Connection& db);
/// Overwrites what the file still contains of pages from before a rotation. After an error the next start tries again.
Status sweep(SqliteStore::State& state);

struct Rotated {
  std::string key_ids;
  std::size_t layers = 0;
  std::vector<std::filesystem::path> former;  ///< files in data_dir that a former key can still open
  std::string unswept;  ///< why store.db still holds digests under the former key in unused pages; empty: it does not
};
/// Implements `driftd key rotate` for a key in data_dir: opens the store, rewrites it, writes the key with the next
/// layer, commits. An error leaves key and store unchanged; after a kill between the last two steps, the next start
/// finishes the rotation. `line`: who asked, and why. `kind`: of the next layer. Returns `conflict` if an agent runs,
/// or if a second slow layer is asked for.
Result<Rotated> rotate(Settings settings, core::AuditEntry line, const Clock& clock,
                       core::LayerKind kind = core::LayerKind::hmac, const ReportSlowWork& report = {});

}  // namespace driftd::store
