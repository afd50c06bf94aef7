// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <list>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "controller/clock.hpp"
#include "controller/metrics.hpp"
#include "controller/reconciler.hpp"

namespace driftd::controller {

/// One attempt. `stop` belongs to `context.stop`.
struct Attempt {
  Key key;
  bool finalizes = false;
  Context context;
  std::stop_source stop;
};

/// How an attempt ended. `threw`: the reconciler threw, and `outcome` is a Requeue with what it said.
struct AttemptResult {
  Outcome outcome;
  bool threw = false;
};

/// A call that has not returned.
struct RunningCall {
  Key key;
  bool finalizes = false, overdue = false;  ///< `overdue`: it is past its deadline and counts as failed already
  Duration running{};
};

/// Calls a reconciler for the keys of a work queue. start() makes threads for that; a test calls take(), run(),
/// finish() and expire() itself. Any thread, except start() and stop().
///
/// A deleted resource is finalized until that succeeds, before a resource of the same name is reconciled. Only if
/// finalize() is Failed and such a resource exists, it goes on with that one, and the log says what was given up.
class Controller {
 public:
  Controller(std::string name, const Settings& settings, const Clock& clock, Reconciler& reconciler, Log log,
             std::uint64_t seed);
  ~Controller();  ///< calls stop()
  Controller(const Controller&) = delete;
  Controller& operator=(const Controller&) = delete;

  void start();
  /// No key is taken any more, running calls are asked to stop, and waited for. May be called again.
  void stop();

  void handle(const Change& change);  ///< a handler of a Watcher
  void add(const Key& key);           ///< something else concerns the resource: an outside event, another kind
  void add_at(const Key& key, Time due);
  void forget(const Key& key);  ///< the key is not waited for any more, nor finalized
  /// Adds all keys, and those that are Failed, one every `resync_pace`, but in half a `scheduler_interval` at most.
  /// Returns how many.
  std::size_t resync(const std::vector<Key>& keys);

  std::optional<Attempt> take();
  AttemptResult run(Attempt& attempt);  ///< calls the reconciler
  /// Ends an attempt. Returns true if another thread works in place of the caller, because the call was overdue.
  bool finish(const Attempt& attempt, const AttemptResult& result);
  /// Asks calls that are past their deadline to stop, and counts them as failed.
  void expire();
  Time next_due() const;       ///< when take() has something; Time::max() if nothing waits
  Time next_deadline() const;  ///< when expire() has something; Time::max() if no call runs

  std::vector<FailedKey> failed() const;
  std::vector<RunningCall> running() const;
  ControllerMetrics metrics() const;
  std::size_t known() const;  ///< keys that it remembers anything of; 0 when all is done

 private:
  struct Call {
    Time since{}, deadline{};
    bool finalizes = false, overdue = false;
    std::stop_source stop;
    bool replaced = false;  ///< another thread works in place of that of this call
  };
  struct Worker {
    std::thread thread;
    bool has_ended = false;
  };
  /// Of a resource that is being deleted, or is gone.
  struct Ending {
    ResourceMeta last;
    bool is_wanted = true;      ///< finalize() is to be called
    bool is_gone = false;       ///< DELETED was seen
    bool went_in_hand = false;  ///< … while finalize() was in hand
    bool is_created = false;    ///< a resource of that name exists again
    bool is_finalized = false;  ///< but the resource still exists
  };

  void work(Worker& worker);
  void watch_deadlines();
  // These are called with mutex_ held.
  void handle_deletion(const Change& change);
  /// Returns what to log about a resource that is given up; empty if there is nothing.
  std::string end_finalize(const Attempt& attempt, const Outcome& outcome, WorkQueue::End end);
  void count(const AttemptResult& result, Duration duration);
  Time first_deadline() const;
  void hire();
  void replace_overdue_workers();
  // And these without.
  void report(const Attempt& attempt, const Outcome& outcome, WorkQueue::End end) const;
  std::string text_of(const Key& key, bool finalizes) const;

  const std::string name_;
  const Settings settings_;
  const Clock& clock_;
  Reconciler& reconciler_;
  const Log log_;
  mutable std::mutex mutex_;
  std::condition_variable due_changed_, deadline_changed_;
  WorkQueue queue_;
  std::map<Key, Ending> endings_;
  std::map<Key, Call> calls_;
  ControllerMetrics metrics_;
  Duration total_duration_{};
  std::uint64_t ended_calls_ = 0;
  bool stopping_ = false;
  std::list<Worker> workers_;
  std::thread deadlines_;
};

}  // namespace driftd::controller
