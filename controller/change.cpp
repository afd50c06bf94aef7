// SPDX-License-Identifier: Apache-2.0
#include "controller/change.hpp"

namespace driftd::controller {
namespace {

std::optional<ChangeType> type_of(const ResourceMeta& before, const ResourceMeta& now) {
  const bool rest_changed = now.rest_digest != before.rest_digest;
  if (now.generation != before.generation) return ChangeType::updated;
  if (now.deleting && !before.deleting) return ChangeType::updated;
  if (now.generation == 0 && rest_changed) return ChangeType::updated;
  if (now.status_digest != before.status_digest || now.observed_generation != before.observed_generation)
    return ChangeType::status_updated;
  if (rest_changed) return ChangeType::metadata_updated;
  return std::nullopt;
}

}  // namespace

std::string_view render(ChangeType type) {
  switch (type) {
    case ChangeType::created:
      return "CREATED";
    case ChangeType::updated:
      return "UPDATED";
    case ChangeType::status_updated:
      return "STATUS_UPDATED";
    case ChangeType::deleted:
      return "DELETED";
    case ChangeType::metadata_updated:
      return "METADATA_UPDATED";
  }
  return "";
}

std::vector<Change> changes_between(const std::optional<ResourceMeta>& before, const std::optional<ResourceMeta>& now) {
  std::vector<Change> out;
  if (before && now && before->uid == now->uid) {
    const auto type = type_of(*before, *now);
    if (type) out.push_back({*type, *now, before, now->rest_digest != before->rest_digest});
    return out;
  }
  if (before) out.push_back({ChangeType::deleted, *before, std::nullopt, false});
  if (now) out.push_back({ChangeType::created, *now, std::nullopt, false});
  return out;
}

}  // namespace driftd::controller
