// SPDX-License-Identifier: Apache-2.0
// What events and applications note for the slots (SlotKeeper).
#include <algorithm>

#include "slot_state.hpp"

namespace driftd::consumer {
namespace {

bool may_use(const SlotBinding& binding, const std::string& backend) {
  return binding.backend == backend ||
         std::find(binding.alternates.begin(), binding.alternates.end(), backend) != binding.alternates.end();
}

}  // namespace

void SlotKeeper::note(State& state, unsigned need, std::chrono::milliseconds delay) {
  if (need == kNothing) return;
  state.needs |= need;
  controller_.add_at({"", state.binding.slot}, clock_.now() + delay);
}

void SlotKeeper::note_backend(const std::string& backend, unsigned need, unsigned otherwise) {
  for (const auto& state : slots_) {
    if (!may_use(state->binding, backend)) continue;
    const unsigned what = !state->live ? kReconnect | need : state->backend == backend ? need : otherwise;
    note(*state, what, what == kCredentials ? std::chrono::milliseconds(0) : spread(backend));
  }
}

/// A random delay. The more slots a backend has here, the longer the time over which they come.
std::chrono::milliseconds SlotKeeper::spread(const std::string& backend) {
  const auto users = std::count_if(slots_.begin(), slots_.end(),
                                   [&backend](const auto& state) { return may_use(state->binding, backend); });
  const auto window = std::max(settings_.reconnect_spread, settings_.reconnect_spread_per_slot * users);
  return std::chrono::milliseconds(
      std::uniform_int_distribution<std::chrono::milliseconds::rep>(0, window.count())(random_));
}

void SlotKeeper::credential_rotated(const std::string& backend) {
  const std::lock_guard lock(mutex_);
  breaker(backend).reset();
  for (const auto& state : slots_) {
    if (state->backend == backend) state->rotated_at = std::chrono::steady_clock::now();
  }
  note_backend(backend, kCredentials, kNothing);
}

void SlotKeeper::updated(const std::string& backend) {
  const std::lock_guard lock(mutex_);
  breaker(backend).reset();
  note_backend(backend, kReload, kImprove);
}

void SlotKeeper::endpoint_changed(const std::string& backend) {
  const std::lock_guard lock(mutex_);
  breaker(backend).reset();
  note_backend(backend, kReconnect, kImprove);
}

void SlotKeeper::health_changed(const std::string& backend, bool down) {
  const std::lock_guard lock(mutex_);
  if (down) {
    if (!down_.insert(backend).second) return;
    for (const auto& state : slots_) {  // a slot without an alternate keeps what it has
      const auto names = candidates(*state);
      if (state->live && state->backend == backend && !names.empty() && names.front() != backend) {
        note(*state, kReconnect, spread(backend));
      }
    }
    return;
  }
  down_.erase(backend);
  breaker(backend).reset();
  note_backend(backend, kNothing, kImprove);
}

void SlotKeeper::deleted(const std::string& backend) {
  const std::lock_guard lock(mutex_);
  deleted_.insert(backend);
  note_backend(backend, kReconnect, kNothing);
}

void SlotKeeper::created(const std::string& backend) {
  const std::lock_guard lock(mutex_);
  if (deleted_.erase(backend) == 0) return;
  breaker(backend).reset();
  note_backend(backend, kReload, kImprove);
}

void SlotKeeper::resync() {
  const std::lock_guard lock(mutex_);
  down_.clear();
  for (auto& [name, breaker] : breakers_) breaker.reset();
  for (const auto& state : slots_) {
    note(*state, state->live ? kReload | kImprove : unsigned{kReconnect}, spread(state->binding.backend));
  }
}

void SlotKeeper::report_broken(const std::string& slot, const std::shared_ptr<Slot>& connection) {
  const std::lock_guard lock(mutex_);
  for (const auto& state : slots_) {
    if (state->binding.slot != slot || state->live != connection || !connection) continue;
    // Each operation that fails reports it again. A delay that is drawn each time would become the shortest of all, and
    // what is being replaced right now needs no second replacement.
    if (((state->needs | state->doing) & kReconnect) == 0) note(*state, kReconnect, spread(state->backend));
  }
}

std::shared_ptr<Slot> SlotKeeper::slot(const std::string& name) const {
  const std::lock_guard lock(mutex_);
  for (const auto& state : slots_) {
    if (state->binding.slot == name) return state->live;
  }
  return nullptr;
}

std::vector<SlotStatus> SlotKeeper::status() const {
  const std::lock_guard lock(mutex_);
  std::vector<SlotStatus> out;
  for (const auto& state : slots_) {
    out.push_back(
        {state->binding.slot, state->live ? state->backend : std::string(), state->last_error, state->connected_at});
  }
  return out;
}

}  // namespace driftd::consumer
