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

/// A violation of the ABI that the host noticed. `rule` is the id of the check that reports it.
struct Violation {
  std::string rule, text;
};

/// What an instance may emit and ask for.
struct Declarations {
  std::set<std::string> kinds, metrics;
  std::map<std::string, std::string> secrets;  ///< token → its bytes
};

/// A function of a plugin's table that has a call. The last three are a sink's, which also has `open`.
enum class Function { open, read, refresh, watch, health, discover, apply, deliver, probe, flush };
const char* name_of(Function function);

class HostCall;

/// A call must return within this time after a cancel or its deadline; otherwise the agent kills the worker
/// (provider.h).
inline constexpr std::chrono::milliseconds kGrace{2000};
/// How long a call may take: the agent's default `timeout`.
inline constexpr std::chrono::milliseconds kCallTime{60'000};

/// What the host does to one call. By default it causes no trouble.
struct CallFaults {
  std::chrono::milliseconds time = kCallTime;  ///< from the start to the deadline; negative: it has passed already
  std::optional<std::uint64_t> cancel_at;  ///< cancels inside the k-th host function, from 1; 0: before the call starts
  std::optional<std::uint64_t> finish_soon_at;  ///< emit returns FINISH_SOON from the n-th record on, from 1
  bool deny_secrets = false;
  /// Runs on the call's thread at the start of each host function except `now` and `query`. It may block.
  std::function<void(HostCall&)> hook;
  /// Passes the bytes of a secret to `use`. If empty, `use` gets the planted bytes directly.
  std::function<void(const std::string& bytes, driftd_use_fn use, void* user)> deliver_secret;
};

/// One call into the provider. The thread that called begin() owns it until end(); until then only that thread may
/// touch `trace`.
class HostCall {
 public:
  HostCall(Function function, CallFaults faults, std::shared_ptr<const Declarations> declared);
  ~HostCall();
  HostCall(const HostCall&) = delete;
  HostCall& operator=(const HostCall&) = delete;

  driftd_call begin();  ///< creates the handle and makes the calling thread its owner
  void end();           ///< invalidates the handle

  void cancel();  ///< any thread
  bool cancelled() const { return cancelled_; }
  bool over() const;  ///< the call was cancelled or its deadline has passed
  std::int64_t deadline_ns() const { return deadline_ns_; }
  bool finishing() const { return finishing_; }  ///< FINISH_SOON was returned to the provider
  void finish_soon() { finishing_ = true; }
  int cancel_fd();
  bool takes_records() const {
    return function == Function::read || function == Function::refresh || function == Function::watch;
  }

  const Function function;
  const CallFaults faults;
  const std::shared_ptr<const Declarations> declared;
  std::uint32_t events = 0;  ///< deliver: how many events its batch has
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

/// The adversarial host. Its table works like the agent's, but records each broken rule as a violation instead of
/// rejecting the call or aborting. There is one in each process. [any thread]
class Host {
 public:
  static Host& get();
  const driftd_host_table* table() const;
  /// Gives providers another table, whose functions call those of own_table(). Must be called before the provider is
  /// loaded.
  void set_table(const driftd_host_table* table) { table_ = table; }
  static const driftd_host_table* own_table();

  /// Sets the wall clock that providers see: `clock` maps the system's time in ns. Null restores the system's.
  void set_clock(std::function<std::int64_t(std::int64_t)> clock);
  std::int64_t now();

  void add_violation(const char* rule, const std::string& text);
  std::vector<Violation> violations() const;
  void clear_violations();
  /// Throws RuleBroken with the first violation of `rule` and their number, if there are any.
  void expect_no_violation(const char* rule) const;

  /// Returns the call behind `handle` if `function` may use it on this thread now. Otherwise records a violation and
  /// returns null. Counts the callback and applies the call's faults.
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
