// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <map>
#include <utility>

#include "check/check.hpp"
#include "check/host.hpp"
#include "core/ports/session.hpp"
#include "ipc/messages.hpp"

namespace driftd::check {

/// A function that runs on a thread of a pool. Waiting is counted in slices that the machine really gave us: a busy
/// machine makes nobody late. A thread that never returns is left behind; the process ends by _exit.
class Job {
 public:
  static std::shared_ptr<Job> start(std::function<void()> function);
  bool done() const { return done_; }
  bool wait(std::chrono::milliseconds time_limit);  ///< true: it returned

 private:
  friend class PooledThread;
  std::function<void()> function_;
  std::atomic<bool> done_{false};
  std::mutex mutex_;
  std::condition_variable changed_;
};

/// The provider, loaded into this process once and never unloaded. What cannot be loaded or understood ends a check as
/// CheckNotMade, with the id of the check that says why. Any thread.
class Provider {
 public:
  static const Provider& load(const Subject& subject);

  driftd_provider_table table{};  ///< full size: what the provider's own lacks answers UNSUPPORTED
  /// `describe` and `schema`, with a watchdog.
  CallTrace describe() const;
  CallTrace schema(const std::string& what) const;
  /// What it says of itself, as the agent understands it.
  const core::ProviderInfo& info() const;
  const ipc::LoadAnswer& loaded() const;
  /// The extension's table or nullptr. Copy it by its size.
  const void* query(const char* id, std::uint32_t revision) const;
  /// Kinds and metrics from describe, tokens as given.
  std::shared_ptr<const Declarations> declared(const std::map<std::string, std::string>& secrets) const;
};

/// A call in progress on a thread of the pool. Owned by the thread that started it.
class RunningCall {
 public:
  using Body = std::function<driftd_status(driftd_call, CallTrace&)>;
  HostCall& call() const { return *call_; }
  bool returned() const { return job_->done(); }
  bool returned_within(std::chrono::milliseconds time_limit) const { return job_->wait(time_limit); }
  void cancel() const;  ///< and wakes the instance, as the agent does
  /// Until it returned. RuleBroken, with its name, when it did not within kGrace of a cancel, its deadline or
  /// FINISH_SOON.
  CallTrace wait();

 private:
  friend class Instance;
  std::string reason() const;
  std::shared_ptr<HostCall> call_;
  std::shared_ptr<Job> job_;
  std::function<void()> wake_;
  std::string name_;
};

/// What a call asks for.
struct CallArguments {
  std::string cursor;              ///< refresh, watch
  std::vector<std::string> kinds;  ///< refresh; empty: all
  std::vector<Identity> ids;       ///< read
  bool full = false;               ///< refresh: DRIFTD_REFRESH_FULL
};

/// One opened instance. Closed by the destructor unless a call never returned.
class Instance {
 public:
  explicit Instance(const Subject& subject);  ///< CheckNotMade when it cannot be opened
  ~Instance();
  Instance(Instance&&) noexcept = default;
  Instance& operator=(Instance&&) = delete;

  /// Opens with other settings; `first` says how that went, `second` is null unless it is OK.
  static std::pair<CallTrace, std::unique_ptr<Instance>> open(const Subject& subject, const std::string& settings_json,
                                                              const std::map<std::string, std::string>& secrets,
                                                              const CallFaults& faults = {});

  RunningCall start(Function function, const CallArguments& arguments = {}, CallFaults faults = {}) const;
  RunningCall start(Function function, CallFaults faults, RunningCall::Body body) const;  ///< any function of an
                                                                                          ///< extension
  CallTrace refresh(const CallArguments& arguments = {}, const CallFaults& faults = {}) const {
    return start(Function::refresh, arguments, faults).wait();
  }
  CallTrace read(const std::vector<Identity>& ids, const CallFaults& faults = {}) const {
    return start(Function::read, CallArguments{{}, {}, ids}, faults).wait();
  }
  CallTrace health(const CallFaults& faults = {}) const { return start(Function::health, {}, faults).wait(); }
  CallTrace diff(const driftd_diff_args& args) const;
  void wake() const;
  /// RuleBroken when it does not return within kGrace. Nothing may be called afterwards.
  void close();

  driftd_instance raw() const;
  const Provider& provider() const;

 private:
  struct Opened;
  explicit Instance(std::shared_ptr<Opened> opened);
  std::shared_ptr<Opened> opened_;
};

}  // namespace driftd::check
