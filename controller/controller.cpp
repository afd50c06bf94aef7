// SPDX-License-Identifier: Apache-2.0
#include "controller/controller.hpp"

#include <algorithm>
#include <cassert>
#include <exception>
#include <random>
#include <utility>

namespace driftd::controller {
namespace {

bool has_succeeded(const Outcome& outcome) {
  return std::holds_alternative<Success>(outcome) || std::holds_alternative<RequeueAfter>(outcome);
}

std::string reason_of(const Outcome& outcome) {
  if (const auto* failed = std::get_if<Failed>(&outcome)) return failed->reason;
  if (const auto* requeue = std::get_if<Requeue>(&outcome)) return requeue->reason;
  return {};
}

WorkQueue::Random random_from(std::uint64_t seed) {
  return [engine = std::mt19937_64(seed)]() mutable { return engine(); };
}

}  // namespace

Controller::Controller(std::string name, const Settings& settings, const Clock& clock, Reconciler& reconciler, Log log,
                       std::uint64_t seed)
    : name_(std::move(name)),
      settings_(settings),
      clock_(clock),
      reconciler_(reconciler),
      log_(std::move(log)),
      queue_(settings, random_from(seed)) {}

Controller::~Controller() { stop(); }

void Controller::handle(const Change& change) {
  const std::lock_guard lock(mutex_);
  const Key& key = change.resource.key;
  // First, also for what is being deleted: a finalize() that writes a status must not wake itself.
  if (change.type == ChangeType::status_updated && !change.metadata_changed && !settings_.reconcile_on_status) return;
  if (change.type == ChangeType::deleted || change.resource.deleting) return handle_deletion(change);
  const auto ending = endings_.find(key);
  if (ending != endings_.end()) ending->second.is_created = true;
  queue_.add(key, clock_.now());
  due_changed_.notify_all();
}

/// A resource that was finalized while it still existed is not finalized once more when it is gone.
void Controller::handle_deletion(const Change& change) {
  const Key& key = change.resource.key;
  const bool is_gone = change.type == ChangeType::deleted;
  const auto known = endings_.find(key);
  if (known != endings_.end() && known->second.last.uid == change.resource.uid) {
    Ending& ending = known->second;
    if (ending.is_finalized && !is_gone) return;
    if (ending.is_finalized) {
      endings_.erase(known);
      queue_.forget(key);
      return;
    }
    if (!ending.is_wanted && is_gone) {  // finalize() is in hand; when it removed its finalizer, the resource went
      ending.is_gone = ending.went_in_hand = true;
      return;
    }
  }
  Ending ending;
  ending.last = change.resource;
  ending.is_gone = is_gone;
  endings_.insert_or_assign(key, std::move(ending));
  queue_.add(key, clock_.now());
  due_changed_.notify_all();
}

void Controller::add(const Key& key) { add_at(key, clock_.now()); }

void Controller::add_at(const Key& key, Time due) {
  const std::lock_guard lock(mutex_);
  queue_.add_at(key, due);
  due_changed_.notify_all();
}

void Controller::forget(const Key& key) {
  const std::lock_guard lock(mutex_);
  endings_.erase(key);
  queue_.forget(key);
}

std::size_t Controller::resync(const std::vector<Key>& keys) {
  const std::lock_guard lock(mutex_);
  std::set<Key> all(keys.begin(), keys.end());
  for (const FailedKey& failed : queue_.failed()) all.insert(failed.key);
  std::erase_if(all, [this](const Key& key) {
    const auto ending = endings_.find(key);
    return ending != endings_.end() && ending->second.is_finalized;
  });
  if (all.empty()) return 0;
  const auto count = static_cast<Duration::rep>(all.size());
  const Duration pace = std::min(settings_.resync_pace, settings_.scheduler_interval / (2 * count));
  Time due = clock_.now();
  for (const Key& key : all) {
    queue_.add_at(key, due, Cause::resync);
    due += pace;
  }
  due_changed_.notify_all();
  return all.size();
}

std::optional<Attempt> Controller::take() {
  const std::lock_guard lock(mutex_);
  const Time now = clock_.now();
  if (stopping_) return std::nullopt;
  const auto taken = queue_.take(now);
  if (!taken) return std::nullopt;
  Attempt out;
  out.key = taken->key;
  out.context.attempt = taken->attempt;
  out.context.deadline = now + settings_.reconciliation_timeout;
  out.context.stop = out.stop.get_token();
  const auto ending = endings_.find(out.key);
  if (ending != endings_.end()) {
    out.finalizes = true;
    out.context.last_seen = ending->second.last;
    ending->second.is_wanted = ending->second.is_finalized = false;
  }
  calls_.emplace(out.key, Call{now, out.context.deadline, out.finalizes, false, out.stop});
  if (taken->attempt > 1) ++metrics_.retries;
  if (out.finalizes) ++metrics_.finalizations;
  deadline_changed_.notify_all();
  return out;
}

AttemptResult Controller::run(Attempt& attempt) {
  std::string error;
  try {
    if (attempt.finalizes) return {reconciler_.finalize(attempt.key, attempt.context)};
    return {reconciler_.reconcile(attempt.key, attempt.context)};
  } catch (const std::exception& thrown) {
    error = thrown.what();
  } catch (...) {
    error = "an exception of an unknown type";
  }
  return {Requeue{std::move(error)}, true};
}

bool Controller::finish(const Attempt& attempt, const AttemptResult& result) {
  WorkQueue::End end{};
  std::string given_up;
  Outcome outcome = result.outcome;
  bool stopping = false, replaced = false;
  {
    const std::lock_guard lock(mutex_);
    stopping = stopping_;
    const Time now = clock_.now();
    const auto call = calls_.find(attempt.key);
    assert(call != calls_.end());
    if (call->second.overdue) {
      outcome = Requeue{"timed out after " + render(settings_.reconciliation_timeout)};
    } else {
      count(result, now - call->second.since);
    }
    replaced = call->second.replaced;
    calls_.erase(call);
    const std::size_t failed = queue_.failed_count();
    end = queue_.finish(attempt.key, outcome, now);
    if (queue_.failed_count() > failed) ++metrics_.given_up;
    if (attempt.finalizes) given_up = end_finalize(attempt, outcome, end);
    due_changed_.notify_all();
  }
  if (!stopping) report(attempt, outcome, end);
  if (!given_up.empty()) log_(LogLevel::error, given_up);
  return replaced;
}

std::string Controller::end_finalize(const Attempt& attempt, const Outcome& outcome, WorkQueue::End end) {
  const auto at = endings_.find(attempt.key);
  if (at == endings_.end()) return {};  // it was forgotten
  Ending& ending = at->second;
  const bool succeeded = std::holds_alternative<Success>(outcome);
  if (ending.is_wanted) return {};  // it was deleted once more meanwhile, and waits
  if (!succeeded && !(end == WorkQueue::End::failed && ending.is_created)) {
    ending.is_wanted = true;
    // What did not succeed did not know yet that it is gone.
    if (std::exchange(ending.went_in_hand, false)) queue_.add(attempt.key, clock_.now());
    return {};
  }
  if (ending.is_created) {
    endings_.erase(at);
    queue_.add(attempt.key, clock_.now());
    if (succeeded) return {};
    return text_of(attempt.key, true) +
           " was given up, for a resource of that name exists again, which is reconciled now: " + reason_of(outcome);
  }
  if (ending.is_gone) {
    endings_.erase(at);
    queue_.forget(attempt.key);
  } else {
    ending.is_finalized = true;
  }
  return {};
}

void Controller::count(const AttemptResult& result, Duration duration) {
  ++metrics_.reconciliations_total;
  total_duration_ += duration;
  ++ended_calls_;
  if (has_succeeded(result.outcome)) {
    ++metrics_.reconciliations_successful;
  } else if (stopping_) {
    ++metrics_.reconciliations_interrupted;
  } else if (result.threw) {
    ++metrics_.exceptions;
    ++metrics_.reconciliations_failed;
  } else if (std::holds_alternative<Failed>(result.outcome)) {
    ++metrics_.reconciliations_failed;
  } else {
    ++metrics_.reconciliations_requeued;
  }
}

std::string Controller::text_of(const Key& key, bool finalizes) const {
  return "controller " + name_ + ": " + (finalizes ? "finalize" : "reconcile") + " of " + render(key);
}

void Controller::report(const Attempt& attempt, const Outcome& outcome, WorkQueue::End end) const {
  if (has_succeeded(outcome)) return;
  const std::string what = text_of(attempt.key, attempt.finalizes);
  if (std::holds_alternative<Failed>(outcome) || end == WorkQueue::End::failed) {
    log_(LogLevel::error, what + " is Failed in attempt " + std::to_string(attempt.context.attempt) + ": " +
                              reason_of(outcome) + "; it is tried again on a change and by the next resync");
    return;
  }
  log_(LogLevel::warning, what + ": attempt " + std::to_string(attempt.context.attempt) + " of " +
                              std::to_string(settings_.max_retry_attempts) + " did not succeed: " + reason_of(outcome));
}

void Controller::expire() {
  std::vector<std::stop_source> sources;
  std::vector<std::string> texts;
  {
    const std::lock_guard lock(mutex_);
    const Time now = clock_.now();
    for (auto& [key, call] : calls_) {
      if (call.overdue || call.deadline > now) continue;
      call.overdue = true;
      sources.push_back(call.stop);
      texts.push_back(text_of(key, call.finalizes) + " timed out after " + render(settings_.reconciliation_timeout) +
                      "; it was asked to stop, and its key waits until it returns");
      ++metrics_.timeouts;
      ++metrics_.reconciliations_total;
      ++metrics_.reconciliations_failed;
      total_duration_ += now - call.since;
      ++ended_calls_;
    }
  }
  // Without the mutex: a callback of the token may add a key.
  for (auto& source : sources) source.request_stop();
  for (const auto& text : texts) log_(LogLevel::error, text);
}

}  // namespace driftd::controller
