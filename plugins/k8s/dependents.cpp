// SPDX-License-Identifier: Apache-2.0
// Emits what an event of the watch changes beside its own object: a Helm release consists of several Secrets, a backend
// of several objects.
#include <utility>

#include "k8s/helm.hpp"
#include "k8s/json_access.hpp"
#include "k8s/watcher.hpp"

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
    backends_.update(call, [&](const sdk::Record& record) { emit(call, record); });
  } catch (const sdk::Failure& failure) {
    const bool ends = host_failure_ || failure.code == DRIFTD_CANCELLED || failure.code == DRIFTD_DEADLINE;
    if (ends) throw;
    call.diag({failure.code, failure.kind, {}, {}, failure.what(), failure.right, failure.retry_after_ms});
    dependents_after_ = Clock::now() + kAgain;
    if (failure.code != DRIFTD_DENIED && failure.code != DRIFTD_UNSUPPORTED) return;
    // A missing right must not hold back the other kinds; the refresh names it in each cycle.
    backends_.pause(Clock::now() + kAgainRefused);
    if (!std::exchange(releases_, {}).empty())
      list_cache_.forget();  // the change was not emitted, so the next refresh must list
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
    lister_.list(call, one, space, [&](const Lister::Listed& listed) { found.add(listed.object); });
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

}  // namespace driftd::k8s
