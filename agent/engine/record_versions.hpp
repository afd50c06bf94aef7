// SPDX-License-Identifier: Apache-2.0
// Whether a stored version may be compared with that of a record. Under the same version a resource is unchanged only
// as long as the system gives no version twice: after a restore from a backup (etcd) it does.
#pragma once

#include "core/judge/judge.hpp"
#include "core/ports/store.hpp"

namespace driftd::engine {

/// Returns true if the record has a smaller version than the row, and the same identity. Only decimal numbers without a
/// sign have an order.
bool went_back(const core::StoredResource& row, const core::Observation& seen);
/// Notes in the backend's row that versions observed before `since` (wall clock) are not comparable with later ones.
void distrust_versions(core::BackendRow& row, Nanos since);
/// Returns that time. 0 if every stored version is comparable.
Nanos versions_since(const core::BackendRow& row);

}  // namespace driftd::engine
