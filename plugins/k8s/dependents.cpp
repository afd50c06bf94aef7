// SPDX-License-Identifier: Apache-2.0
// Emits what an event of the watch changes beside its own object: a Helm release consists of several Secrets, a backend
// of several objects.
#include <utility>

#include "k8s/helm.hpp"
#include "k8s/json_access.hpp"
#include "k8s/watcher.hpp"

namespace driftd::k8s {
namespace {

constexpr std::chrono::seconds kAgain{1}, kAgainRefused{60}, kAgainPassedOver{60};

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
    const bool first = !defining_ && tracks_backends();
    if (space_freed_ && defining_ && tracks_backends()) recheck_skipped(call);
    if (first || !causes_.empty()) emit_registrations(call);
  } catch (const sdk::Failure& failure) {
    const bool ends = host_failure_ || failure.code == DRIFTD_CANCELLED || failure.code == DRIFTD_DEADLINE;
    if (ends) throw;
    call.diag({failure.code, failure.kind, {}, {}, failure.what(), failure.right, failure.retry_after_ms});
    dependents_after_ = Clock::now() + kAgain;
    if (failure.code != DRIFTD_DENIED && failure.code != DRIFTD_UNSUPPORTED) return;
    // A missing right must not hold back the other kinds; the refresh names it in each cycle.
    refused_until_ = Clock::now() + kAgainRefused;
    defining_.reset();
    causes_.clear();
    if (!std::exchange(releases_, {}).empty())
      list_cache_.forget();  // the change was not emitted, so the next refresh must list
  }
}

void Watcher::emit_releases(sdk::Call& call) {
  const Resource* secrets = of_kind(resources_, kHelmRelease);
  for (const auto& [space, name] : std::exchange(releases_, {})) {
    releases_.emplace(space, name);
    Resource one = *secrets;
    one.label_selector += ",name=" + name;
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

/// Skipped namespaces may fit again: their definitions are emitted as if everything had changed.
void Watcher::recheck_skipped(sdk::Call& call) {
  if (Clock::now() < recheck_after_) return;
  recheck_after_ = Clock::now() + kAgainPassedOver;
  space_freed_ = false;
  const auto before = backend_objects_.shares().passed_over();
  std::vector<sdk::Diagnostic> told;  // by emit_registrations()
  defining_ = backend_objects_.collect(call, resources_, told);
  for (const auto& [ref, object] : *defining_) {
    if (before.contains(ref.space)) causes_.insert(ref);
  }
  for (const auto& [place, definition] : known_) {
    if (!before.contains(place.second)) continue;
    for (const auto& ref : {definition.prism, definition.service, definition.secret}) {
      if (ref) causes_.insert(*ref);
    }
  }
}

void Watcher::emit_registrations(sdk::Call& call) {
  const bool first = !defining_;
  std::vector<sdk::Diagnostic> diagnostics;
  if (first) {
    defining_ = backend_objects_.collect(call, resources_, diagnostics);
    // Changes while the right was missing were not emitted, so the next refresh must list.
    if (std::exchange(refused_until_, {}) != Clock::time_point{}) list_cache_.forget();
  } else {
    backend_objects_.complete(call, *defining_, diagnostics);
  }
  auto now = definitions(*defining_, settings_, diagnostics);
  for (const auto& ref : causes_) {
    for (const auto& [place, definition] : now) {
      const auto before = known_.find(place);
      if (!definition.uses(ref) && (before == known_.end() || !before->second.uses(ref))) continue;
      sdk::Record record = registration_or_unreadable(definition, *defining_, settings_, ref, diagnostics);
      record.observed_ns = call.now_ns();
      emit(call, record);
    }
    for (const auto& [place, definition] : known_) {
      if (now.contains(place) || !definition.uses(ref) || backend_objects_.shares().passes_over(definition.space))
        continue;
      sdk::Record gone;
      gone.kind = kRegistration;
      gone.id = gone.backend = definition.name;
      gone.metadata["defined_in"] = definition.space;
      gone.tombstone = true;
      gone.observed_ns = call.now_ns();
      emit(call, gone);
    }
  }
  for (const auto& diagnostic : fold_by_namespace(diagnostics)) call.diag(diagnostic);
  // Definitions of a skipped namespace do not count as gone; they are compared when it fits again.
  for (auto& [place, definition] : known_) {
    if (backend_objects_.shares().passes_over(definition.space)) now.try_emplace(place, std::move(definition));
  }
  known_ = std::move(now);
  causes_.clear();
}

}  // namespace driftd::k8s
