// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/digest.hpp"
#include "base/result.hpp"
#include "core/event/event.hpp"

namespace driftd::proto {

/// Returns the event without values: old and new of each change, and the resource's body and the settings in its
/// states, are `digest:<32 hex>` under `key`. Equal values of one attribute have equal digests. Redacted values stay
/// [REDACTED]. Names, paths, classes, metadata and agent events are not changed, except that notifications and
/// escalations lose the texts that show values. Returns `corrupt` if the bytes are not an event.
Result<core::StoredEvent> digests_only(core::StoredEvent event, const Key& key);

}  // namespace driftd::proto
