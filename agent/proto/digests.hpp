// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/digest.hpp"
#include "base/result.hpp"
#include "core/event/event.hpp"

namespace driftd::proto {

/// The event without any value: old and new of each change, and what the states hold of the resource's body and of the
/// settings, as `digest:<32 hex>` under `key`, so that equal values of one attribute are equal. What is redacted stays
/// [REDACTED]. Names, paths, classes, metadata and events about the agent stay. `corrupt` when the bytes are no event.
Result<core::StoredEvent> digests_only(core::StoredEvent event, const Key& key);

}  // namespace driftd::proto
