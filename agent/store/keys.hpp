// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "core/redact.hpp"

namespace driftd::store {

/// When a layer of the store's key came (ADR 0014).
struct Rotation {
  static constexpr std::int64_t kNotInForce = -1;
  Nanos at_ns = 0;
  std::int64_t newest_event = kNotInForce;  ///< of the store when it was rewritten
};

/// The secrets of one installation (semantics 19), in `data_dir/installation.key`, mode 0600, or where the
/// configuration says. Made once, with the store; without them no stored digest can be compared again.
struct InstallationKey {
  core::RedactionKey worker;        ///< handed to each worker
  core::RedactionKey store;         ///< never leaves the agent; each rotation adds a layer
  std::uint64_t digest_seed = 0;    ///< of the digests of observations; another one with each rotation
  std::vector<Rotation> rotations;  ///< one for each layer

  core::RedactionKeys steps() const { return {worker, store}; }
  /// The key that an event is digested with for sinks that get no values: always the same one for the same event.
  const Key& for_event(std::int64_t seq) const;
};

/// A key that does not lie in data_dir.
struct GivenKey {
  InstallationKey key;
  std::string from;  ///< what messages call its place
};

/// Ids of all links, `worker store layer …`; never key material.
std::string ids_of(const InstallationKey& key);
/// The same of what a store says of its key.
std::string ids_named(const std::string& key_ids);
/// Why `what` (a store, a backup) that was written under `stored` is not opened with the key of `ids`, and the way out.
std::string key_fault(const std::string& key_name, const std::string& ids, const std::string& what,
                      const std::string& stored);

/// A new one, from the system's random bytes.
Result<InstallationKey> make_key();
/// The same with one more layer and another seed. `conflict`: a second slow layer.
Result<InstallationKey> rotated(InstallationKey key, Nanos now, core::LayerKind kind = core::LayerKind::hmac);
/// As it stands in a file.
std::string render(const InstallationKey& key);
/// `corrupt`: no key; `unsupported`: of a newer driftd; `where` names it. Error text holds no key material.
Result<InstallationKey> parse_key(const std::string& text, const std::string& where);

/// Makes and writes a new key; durable when it returns.
Result<InstallationKey> create_key(const std::filesystem::path& file);
/// `not_found`: no file; `denied`: others may read it; `corrupt`: not a key file; `unsupported`: of a newer driftd.
/// Error text holds no key material.
Result<InstallationKey> read_key(const std::filesystem::path& file);

}  // namespace driftd::store
