// SPDX-License-Identifier: Apache-2.0
// Declarations in a cycle: those that this source makes of other backends, and those that others make of this one.
#include <algorithm>
#include <iterator>

#include "engine/cycle.hpp"

namespace driftd::engine {

KindSeen* Cycle::foreign(const std::string& backend, const std::string& kind) {
  return foreign_.at(backend, kind, context_->sources->registered(backend));
}

void Cycle::take_declared(const core::Observation& record, Extras& extras) {
  Kind* const of = foreign(record.backend, record.id.kind);
  if (of == nullptr) return;
  Kind& kind = *of;
  if (!record.tombstone) ++kind.received;
  if (record.id.kind == core::kRegistration) return speak(record, kind);
  if (!ledger_.declares().has_room(record)) return crowd_out(kind);
  auto write = ledger_.declares().take(record, ledger_.row().uid, run_);
  if (write) extras.declarations.push_back(std::move(*write));
}

/// What is stored already stays, until a list that is whole does not name it.
void Cycle::crowd_out(Kind& kind) {
  ++crowded_out_;
  if (kind.left_out++ == 0) add_once(kind.reasons, Declares::no_room());
}

/// A word on another backend's registration goes to that backend at once; should this page fail, it comes again with
/// it.
void Cycle::speak(const core::Observation& record, Kind& kind) {
  const core::ProviderInfo* info = ledger_.info();
  if (info == nullptr) return;
  const auto text = info->schema_texts.find(record.id.kind);
  if (text == info->schema_texts.end()) {
    add_once(kind.reasons, "provider " + info->id + " declares no kind 'registration': its records are not read");
    return;
  }
  std::shared_ptr<const std::string> shared(ledger_.shared_info(), &text->second);
  const Hearing hearing =
      context_->sources->hear(Word{ledger_.spec().name, record, ledger_.schema(record.id.kind), std::move(shared)});
  constexpr std::size_t kMostFaults = 16;  // of each backend that it speaks of
  if (!hearing.fault.empty()) add_once(kind.reasons, hearing.fault, kMostFaults);
  (hearing.fault.empty() || hearing.no_room ? heard_ : turned_away_).insert(record.backend);
}

void Cycle::complete_declared(const core::Mark& mark, Extras& extras) {
  Kind* const of = foreign(mark.backend, mark.kind);
  if (of == nullptr) return;
  Kind& kind = *of;
  if (mark.count != kind.received) {
    add_once(kind.reasons, "corrupt: COMPLETE says " + std::to_string(mark.count) + " resources, " +
                               std::to_string(kind.received) + " arrived");
    return;
  }
  kind.complete = true;
  if (mark.kind == core::kRegistration) {
    if (mark.count > 0) return;
    return take_back(mark.backend, kind);
  }
  auto missing = ledger_.declares().missing(mark.backend, mark.kind, ledger_.row().uid, run_);
  std::move(missing.begin(), missing.end(), std::back_inserter(extras.declarations));
  const std::string fault = context_->sources->undeclarable(mark.backend, mark.kind);
  if (mark.count > 0 && !fault.empty()) add_once(kind.reasons, fault);
}

/// `kind`: where a fault is noted.
void Cycle::take_back(const std::string& backend, Kind& kind) {
  core::Observation gone;
  gone.backend = backend;
  gone.id = {std::string(core::kRegistration), backend};
  gone.tombstone = true;
  gone.observed_ns = began_.wall;
  speak(gone, kind);
}

void Cycle::take_back_unmentioned() {
  if (foreign_.left_out() > 0) return;
  const std::string registration(core::kRegistration);
  Kind unused;
  for (const auto& backend : context_->sources->speaks_for(ledger_.spec().name)) {
    const bool others_only = turned_away_.contains(backend) && !heard_.contains(backend);
    if (others_only || !foreign_.named({backend, registration})) take_back(backend, unused);
  }
}

/// A whole run that listed every kind, and that there was room for: what it did not speak of at all is not declared any
/// more.
Task<Status> Cycle::withdraw_unmentioned() {
  if (foreign_.left_out() > 0) co_return Status{};
  const auto whole = [](const auto& item) { return item.second.complete; };
  if (!std::all_of(kinds_.begin(), kinds_.end(), whole)) co_return Status{};
  Extras extras;
  extras.declarations = ledger_.declares().unmentioned(foreign_.all(), ledger_.row().uid);
  if (extras.declarations.empty()) co_return Status{};
  const auto status = co_await ledger_.commit_extras(std::move(extras));
  co_return status;
}

/// What sources declare and the complete list does not have: a read must say so, then it is judged.
Task<Status> Cycle::confirm_absent(std::string kind) {
  if (!ledger_.established(kind)) co_return Status{};
  const auto status = co_await confirm(ledger_.declared_absent(kind, run_), &kinds_[kind]);
  co_return status;
}

}  // namespace driftd::engine
