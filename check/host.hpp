// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <unordered_map>

#include "check/call_trace.hpp"

namespace driftd::check {

/// A rule of the ABI that was broken at the border. `rule` is the id of the check that answers for it.
struct Violation {
  std::string rule, text;
};

/// What an instance may say and ask.
struct Declarations {
  std::set<std::string> kinds, metrics;
  std::map<std::string, std::string> secrets;  ///< token → bytes
};

enum class Function { open, read, refresh, watch, health, discover, apply };
const char* name_of(Function function);

class HostCall;

/// After a cancel or a deadline a call must return within this; then the agent kills the worker (provider.h).
inline constexpr std::chrono::milliseconds kGrace{2000};
/// What a call gets, as of an agent whose `timeout` is the default.
inline constexpr std::chrono::milliseconds kCallTime{60'000};

/// What the host does to one call; the default is kind.
struct CallFaults {
  std::chrono::milliseconds time = kCallTime;   ///< until the deadline; negative: it passed before the call
  std::optional<std::uint64_t> cancel_at;       ///< cancels inside the k-th host function, from 1; 0: before the call
  std::optional<std::uint64_t> finish_soon_at;  ///< emit answers FINISH_SOON from the n-th record on, from 1
  bool deny_secrets = false;
  /// Runs on the call's thread inside each host function, before it acts (`now` and `query` excepted). May block.
  std::function<void(HostCall&)> hook;
  /// Hands out the bytes of a secret; default: `use` sees the planted bytes.
  std::function<void(const std::string& bytes, driftd_use_fn use, void* user)> deliver_secret;
};

/// One call into the provider. The thread that called begin() owns it until end(); `trace` is the owner's until then.
class HostCall {
 public:
  HostCall(Function function, CallFaults faults, std::shared_ptr<const Declarations> declared);
  ~HostCall();
  HostCall(const HostCall&) = delete;
  HostCall& operator=(const HostCall&) = delete;

  driftd_call begin();  ///< makes the handle; the calling thread owns it
  void end();           ///< from now on the handle is stale

  void cancel();  ///< any thread
  bool cancelled() const { return cancelled_; }
  bool over() const;  ///< cancelled, or the deadline passed
  std::int64_t deadline_ns() const { return deadline_ns_; }
  bool finishing() const { return finishing_; }  ///< FINISH_SOON was answered
  void finish_soon() { finishing_ = true; }
  int cancel_fd();
  bool takes_records() const {
    return function == Function::read || function == Function::refresh || function == Function::watch;
  }

  const Function function;
  const CallFaults faults;
  const std::shared_ptr<const Declarations> declared;
  CallTrace trace;

 private:
  friend class Host;
  driftd_call handle_ = 0;
  std::thread::id owner_;
  const std::int64_t deadline_ns_;
  std::atomic<bool> cancelled_{false}, finishing_{false};
  std::mutex mutex_;
  int cancel_fd_ = -1;
};

/// The adversarial host of this process: its table does what the agent's does, but notes who broke which rule instead
/// of refusing or aborting. One for each process; any thread.
class Host {
 public:
  static Host& get();
  const driftd_host_table* table() const;
  /// Gives providers another table, whose functions call those of own_table(). Before the provider is loaded.
  void set_table(const driftd_host_table* table) { table_ = table; }
  static const driftd_host_table* own_table();

  /// Wall clock that providers get: `clock(system's ns)`; null: the system's.
  void set_clock(std::function<std::int64_t(std::int64_t)> clock);
  std::int64_t now();

  void add_violation(const char* rule, const std::string& text);
  std::vector<Violation> violations() const;
  void clear_violations();
  /// Throws RuleBroken with the first violation of `rule` and their number.
  void expect_no_violation(const char* rule) const;

  /// The call behind a handle if it may be used here, now, by `function`; else the violation is noted. Counts the
  /// callback and runs the faults.
  HostCall* claim(driftd_call handle, const char* function);

 private:
  friend class HostCall;
  const driftd_host_table* table_ = own_table();
  mutable std::mutex mutex_;
  std::unordered_map<driftd_call, HostCall*> calls_;
  std::uint64_t generation_ = 0;
  std::function<std::int64_t(std::int64_t)> clock_;
  std::vector<Violation> violations_;
};

std::int64_t mono_ns();  ///< CLOCK_MONOTONIC

}  // namespace driftd::check
