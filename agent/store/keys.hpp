// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "core/redact.hpp"

namespace driftd::store {

/// When a layer was added to the store's key (ADR 0014).
struct Rotation {
  static constexpr std::int64_t kNotInForce = -1;
  Nanos at_ns = 0;
  std::int64_t newest_event = kNotInForce;  ///< newest event of the store when it was rewritten
};

/// The secrets of one installation (semantics 19), in `data_dir/installation.key` with mode 0600, or where the
/// configuration says. They are made once, with the store; without them no stored digest can be compared again.
struct InstallationKey {
  core::RedactionKey worker;        ///< handed to each worker
  core::RedactionKey store;         ///< never leaves the agent; each rotation adds a layer
  std::uint64_t digest_seed = 0;    ///< seed of the digests of observations; each rotation changes it
  std::vector<Rotation> rotations;  ///< one for each layer

  core::RedactionKeys steps() const { return {worker, store}; }
  /// Returns the key of an event's digests for sinks that get no values: always the same one for the same event.
  const Key& for_event(std::int64_t seq) const;
};

/// A key that is kept outside of data_dir.
struct GivenKey {
  InstallationKey key;
  std::string from;  ///< its origin, for messages
};

/// Returns the ids of all parts of the key, `worker store layer …`; never key material.
std::string ids_of(const InstallationKey& key);
/// Returns the same from the text in which a store names its key.
std::string ids_named(const std::string& key_ids);
/// Returns why `what` (a store, a backup) that was written under `stored` cannot be opened with the key of `ids`, and
/// the way out.
std::string key_fault(const std::string& key_name, const std::string& ids, const std::string& what,
                      const std::string& stored);

/// Returns a new key, made of the system's random bytes.
Result<InstallationKey> make_key();
/// Returns the key with one more layer and another seed. Returns `conflict` for a second slow layer.
Result<InstallationKey> rotated(InstallationKey key, Nanos now, core::LayerKind kind = core::LayerKind::hmac);
/// Returns the text of a key file.
std::string render(const InstallationKey& key);
/// Parses the text of a key file; `where` names it in messages. Returns `corrupt` if it is not a key, `unsupported` if
/// a newer driftd wrote it. Error text contains no key material.
Result<InstallationKey> parse_key(const std::string& text, const std::string& where);

/// Makes a new key and writes it durably.
Result<InstallationKey> create_key(const std::filesystem::path& file);
/// Reads a key file. Returns `not_found` if there is no file, `denied` if others may read it, `corrupt` if it is not a
/// key file, `unsupported` if a newer driftd wrote it. Error text contains no key material.
Result<InstallationKey> read_key(const std::filesystem::path& file);

}  // namespace driftd::store
