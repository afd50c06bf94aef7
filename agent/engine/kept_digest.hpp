// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/digest.hpp"
#include "core/ports/store.hpp"
#include "core/redact.hpp"

namespace driftd::engine {

/// What the store may hold of the digest of a record, which its worker made. Of a guess it can be made in no time:
/// beside slow digests it would be the way around them, so then it is forgotten, and the next start judges the record
/// once more.
Digest kept_digest(const core::RedactionKey& key, const core::StoredResource& next);
/// The same of a declaration; that of its sealed body says as much, and it goes into the generation of what is
/// declared.
Digest kept_digest(const core::RedactionKey& key, const core::Declaration& declaration);

}  // namespace driftd::engine
