// SPDX-License-Identifier: Apache-2.0
#include "k8s/watched_backends.hpp"

#include <algorithm>
#include <utility>

#include "k8s/registration.hpp"

namespace driftd::k8s {
namespace {

constexpr std::chrono::seconds kAgainPassedOver{60};

}  // namespace

void WatchedBackends::note(const Ref& ref, const nlohmann::json& object, bool gone) {
  const bool defines =
      ref.type == "Service" || ref.type == "Secret" || ref.type == "ConfigMap" || ref.type == "PrismBackend";
  if (!defines || !is_tracking()) return;
  const auto uses = [&](const auto& item) { return item.second.uses(ref); };
  const bool part = ref.type == "PrismBackend" || is_labelled(object, settings_);
  const bool was = std::any_of(known_.begin(), known_.end(), uses) || (defining_ && defining_->contains(ref));
  const bool passed_over = defining_ && backend_objects_.shares().passes_over(ref.space);
  space_freed_ = space_freed_ || (passed_over && (gone || !part));
  if ((!part && !was && defining_) || (passed_over && !defining_->contains(ref))) return;
  causes_.insert(ref);
  if (!defining_) return;
  if (gone) {
    backend_objects_.shares().remove(*defining_, ref);
  } else {
    backend_objects_.shares().put(*defining_, ref, object);
  }
}

void WatchedBackends::update(sdk::Call& call, const Emit& emit) {
  if (defining_ && backend_objects_.is_partial()) recheck_denied();
  const bool first = !defining_ && is_tracking();
  if (space_freed_ && defining_ && is_tracking()) recheck_skipped(call);
  if (first || !causes_.empty()) emit_registrations(call, emit);
}

void WatchedBackends::pause(Clock::time_point until) {
  refused_until_ = until;
  defining_.reset();
  causes_.clear();
}

void WatchedBackends::recheck_denied() {
  if (Clock::now() < recheck_after_) return;
  recheck_after_ = Clock::now() + kAgainPassedOver;
  defining_.reset();
}

bool WatchedBackends::is_hidden(const Definition& definition) {
  return backend_objects_.shares().passes_over(definition.space) || backend_objects_.hides(definition);
}

/// Skipped namespaces may fit again: their definitions are emitted as if everything had changed.
void WatchedBackends::recheck_skipped(sdk::Call& call) {
  if (Clock::now() < recheck_after_) return;
  recheck_after_ = Clock::now() + kAgainPassedOver;
  space_freed_ = false;
  const auto before = backend_objects_.shares().passed_over();
  std::vector<sdk::Diagnostic> repeated;  // emit_registrations() reports them
  defining_ = backend_objects_.collect(call, resources_, repeated);
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

void WatchedBackends::read_objects(sdk::Call& call, std::vector<sdk::Diagnostic>& diagnostics) {
  if (defining_) return backend_objects_.complete(call, *defining_, diagnostics);
  const bool was_partial = backend_objects_.is_partial();
  defining_ = backend_objects_.collect(call, resources_, diagnostics);
  if (backend_objects_.is_partial()) recheck_after_ = Clock::now() + kAgainPassedOver;
  // Changes while the right was missing were not emitted, so the next refresh must list.
  if (std::exchange(refused_until_, {}) != Clock::time_point{} || was_partial) list_cache_.forget();
}

void WatchedBackends::emit_registrations(sdk::Call& call, const Emit& emit) {
  std::vector<sdk::Diagnostic> diagnostics;
  read_objects(call, diagnostics);
  auto now = backend_objects_.definitions_of(*defining_, diagnostics);
  for (const auto& cause : causes_) {
    emit_changed(call, cause, now, diagnostics, emit);
    emit_gone(call, cause, now, emit);
  }
  for (const auto& diagnostic : fold_by_namespace(diagnostics)) call.diag(diagnostic);
  // What is hidden does not count as gone; it is compared when it is seen again.
  for (auto& [place, definition] : known_) {
    if (is_hidden(definition)) now.try_emplace(place, std::move(definition));
  }
  known_ = std::move(now);
  causes_.clear();
}

void WatchedBackends::emit_changed(sdk::Call& call, const Ref& cause, const Definitions& now,
                                   std::vector<sdk::Diagnostic>& diagnostics, const Emit& emit) {
  for (const auto& [place, definition] : now) {
    const auto before = known_.find(place);
    if (!definition.uses(cause) && (before == known_.end() || !before->second.uses(cause))) continue;
    sdk::Record record = registration_or_unreadable(definition, *defining_, settings_, cause, diagnostics);
    record.observed_ns = call.now_ns();
    emit(record);
  }
}

void WatchedBackends::emit_gone(sdk::Call& call, const Ref& cause, const Definitions& now, const Emit& emit) {
  for (const auto& [place, definition] : known_) {
    if (now.contains(place) || !definition.uses(cause)) continue;
    if (is_hidden(definition)) continue;
    sdk::Record gone;
    gone.kind = kRegistration;
    gone.id = gone.backend = definition.name;
    gone.metadata["defined_in"] = definition.space;
    gone.tombstone = true;
    gone.observed_ns = call.now_ns();
    emit(gone);
  }
}

}  // namespace driftd::k8s
