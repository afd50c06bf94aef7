// SPDX-License-Identifier: Apache-2.0
#include "k8s/cron_jobs.hpp"

#include <algorithm>

#include "k8s/json_access.hpp"
#include "k8s/kinds.hpp"

namespace driftd::k8s {

std::optional<CronJobRef> cron_job_of(const Resource& resource, const json& object) {
  if (resource.kind != kJob) return std::nullopt;
  const json& owners = list(object, {"metadata", "ownerReferences"});
  const auto found = std::find_if(owners.begin(), owners.end(), [](const json& owner) {
    return find(owner, {"controller"}) == json(true) && text(owner, {"kind"}) == "CronJob" &&
           text(owner, {"apiVersion"}).starts_with("batch/");
  });
  if (found == owners.end()) return std::nullopt;
  return CronJobRef{text(object, {"metadata", "namespace"}), text(*found, {"name"}), text(*found, {"uid"})};
}

void CronJobs::note(const json& cron_job, Clock::time_point now) {
  const std::string uid = text(cron_job, {"metadata", "uid"});
  if (uid.empty()) return;
  const std::lock_guard lock(mutex_);
  shown_[text(cron_job, {"metadata", "namespace"}) + "/" + uid] = now;
  std::erase_if(shown_, [&](const auto& each) { return now - each.second > kRemembered; });
}

bool CronJobs::knows(const CronJobRef& ref, Clock::time_point now) const {
  const std::lock_guard lock(mutex_);
  const auto found = shown_.find(ref.space + "/" + ref.uid);
  return found != shown_.end() && now - found->second <= kRemembered;
}

}  // namespace driftd::k8s
