// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/digest.hpp"
#include "core/ports/store.hpp"
#include "core/redact.hpp"

namespace driftd::engine {

/// Returns the digest of a record as the store may keep it. The worker's digest of a guessed value is computed in no
/// time; stored beside slow digests it would be a way around them. Then the result is empty, and the next start judges
/// the record once more.
Digest kept_digest(const core::RedactionKey& key, const core::StoredResource& next);
/// The same for a declaration. There the digest of the sealed body takes its place; it also goes into the generation of
/// what is declared.
Digest kept_digest(const core::RedactionKey& key, const core::Declaration& declaration);

}  // namespace driftd::engine
