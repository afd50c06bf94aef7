// SPDX-License-Identifier: Apache-2.0
// Emits what an event of the watch changes beside its own object: a Helm release consists of several Secrets, a backend
// of several objects.
#include <utility>

#include "k8s/helm.hpp"
#include "k8s/json_access.hpp"
#include "k8s/mapping.hpp"
#include "k8s/watcher.hpp"
#include "kube/outline.hpp"

namespace driftd::k8s {
namespace {

constexpr std::chrono::seconds kAgain{1}, kAgainRefused{60};

const Resource* of_kind(const std::vector<Resource>& resources, const char* kind) {
  for (const auto& resource : resources) {
    if (resource.kind == kind) return &resource;
  }
  return nullptr;
}

}  // namespace

void Watcher::emit_dependents(sdk::Call& call) {
  if (Clock::now() < dependents_after_) return;
  try {
    if (!releases_.empty()) emit_releases(call);
    if (!jobs_.empty()) emit_jobs(call);
    backends_.update(call, [&](const sdk::Record& record) { emit(call, record); });
  } catch (const sdk::Failure& failure) {
    const bool ends = host_failed_ || failure.code == DRIFTD_CANCELLED || failure.code == DRIFTD_DEADLINE;
    if (ends) throw;
    call.diag({failure.code, failure.kind, {}, {}, failure.what(), failure.right, failure.retry_after_ms});
    dependents_after_ = Clock::now() + kAgain;
    if (failure.code != DRIFTD_DENIED && failure.code != DRIFTD_UNSUPPORTED) return;
    // A missing right must not hold back the other kinds; the refresh names it in each cycle.
    backends_.pause(Clock::now() + kAgainRefused);
    const bool lost = !releases_.empty() || !jobs_.empty();
    releases_.clear();
    jobs_.clear();
    if (lost) list_cache_.forget();  // the change was not emitted, so the next refresh must list
  }
}

void Watcher::emit_releases(sdk::Call& call) {
  const Resource* secrets = of_kind(resources_, kHelmRelease);
  for (const auto& [space, name] : std::exchange(releases_, {})) {
    releases_.emplace(space, name);
    Resource one = *secrets;
    one.label_selector += (one.label_selector.empty() ? "owner=helm,name=" : ",owner=helm,name=") + name;
    HelmReleases found;
    const std::int64_t sent = call.now_ns();
    lister_.list(call, one, space, [&](const kube::Lister::Listed& listed) { found.add(listed.object); });
    std::vector<sdk::Diagnostic> diagnostics;
    auto records = found.records(diagnostics, sent);
    for (const auto& diagnostic : diagnostics) call.diag(diagnostic);
    if (records.empty() && diagnostics.empty()) {
      records.push_back({kHelmRelease, space + "/" + name});
      records.back().tombstone = true;
    }
    for (auto& record : records) {
      record.observed_ns = sent;
      if (settings_.scope.wants(record.kind, record.id)) emit(call, record);
    }
    releases_.erase({space, name});
  }
}

void Watcher::emit_jobs(sdk::Call& call) {
  const Resource& jobs = *of_kind(resources_, kJob);
  while (!jobs_.empty()) {
    const auto [space, name] = *jobs_.begin();
    const std::string path = jobs.path(space, name);
    const std::int64_t sent = call.now_ns();
    const http::Response response = send_request(call, api_, client_, path);
    const bool gone = response.status == 404 && reason_of(response.body) == "NotFound";  // an event says so
    if (!gone && !response.ok()) throw refusal(response, "GET " + path, kJob, jobs.right("get", space));
    const auto [object, cut, why] = kube::parse_object(response.body);
    if (!gone && !object.is_object()) throw sdk::Failure(DRIFTD_CORRUPT, "GET " + path + ": no JSON object", kJob);
    const auto owner = cron_job_of(jobs, object);
    if (!gone && !(owner && cron_job_exists(call, api_, client_, *owner))) {
      sdk::Record record = map_or_unreadable(jobs, object, why, settings_);
      record.observed_ns = sent;
      if (settings_.scope.wants(record.kind, record.id)) emit(call, record);
    }
    jobs_.erase({space, name});
  }
}

}  // namespace driftd::k8s
