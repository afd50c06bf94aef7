// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>

#include "core/redact.hpp"

namespace driftd::store {

/// The secrets of one installation (semantics 19), in `data_dir/installation.key`, mode 0600. Made once, with the
/// store; without them no stored digest can be compared again.
struct InstallationKey {
  core::RedactionKey worker;      ///< handed to each worker
  core::RedactionKey store;       ///< never leaves the agent
  std::uint64_t digest_seed = 0;  ///< of the digests of observations
};

/// Makes and writes a new key; durable when it returns.
Result<InstallationKey> create_key(const std::filesystem::path& file);
/// `not_found`: no file; `denied`: others may read it; `corrupt`: not a key file. Error text holds no key material.
Result<InstallationKey> read_key(const std::filesystem::path& file);

}  // namespace driftd::store
