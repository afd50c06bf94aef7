// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "controller/key.hpp"

namespace driftd::controller {

/// What a watcher remembers of a resource: enough to tell what changed, and no body.
struct ResourceMeta {
  std::string uid;
  std::string api_version;  ///< `prism.io/v1alpha1`
  std::string kind;         ///< `PrismBackend`
  Key key;
  std::int64_t generation = 0;  ///< 0 for a kind that does not count
  std::optional<std::int64_t> observed_generation;
  bool deleting = false;  ///< it has a deletionTimestamp and waits for its finalizers
  std::uint64_t status_digest = 0;
  std::uint64_t rest_digest = 0;  ///< all but the status and what each write changes (resourceVersion, managedFields)
  bool operator==(const ResourceMeta&) const = default;
};

/// The first four are those of the resource-watcher RFC. The last one is not published: the RFC has no event for it.
enum class ChangeType { created, updated, status_updated, deleted, metadata_updated };

std::string_view render(ChangeType type);  ///< `CREATED`, …, as the member `changeType`

struct Change {
  ChangeType type = ChangeType::created;
  ResourceMeta resource;               ///< DELETED: as it was last seen
  std::optional<ResourceMeta> before;  ///< empty for CREATED and DELETED
  bool metadata_changed = false;       ///< of STATUS_UPDATED: labels, annotations or owners changed with it
};

/// Tells which changes lead from one observation of a resource to the next; at least one of the two is there. None if
/// nothing changed, two (DELETED, CREATED) if the uid is another. By the first rule that holds:
/// - UPDATED: another generation. A smaller one counts, too: after a restore of the store it is another resource body,
///   and a reconcile that was not needed costs less than a change that nobody saw.
/// - UPDATED: it is being deleted now, or a kind without generations has another rest digest.
/// - STATUS_UPDATED: another status digest or observed generation.
/// - METADATA_UPDATED: only the rest digest differs, which under the same generation means labels, annotations, owners
///   or finalizers. Handlers get it, for annotations configure controllers; it is not published.
std::vector<Change> changes_between(const std::optional<ResourceMeta>& before, const std::optional<ResourceMeta>& now);

}  // namespace driftd::controller
