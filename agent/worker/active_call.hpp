// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "worker/agent_channel.hpp"
#include "worker/loaded_instance.hpp"

namespace driftd::worker {

std::int64_t mono_ns();  ///< CLOCK_MONOTONIC

/// A call of the agent as the worker runs it. The owner thread runs the plugin's function; cancel, credit and permitted
/// come from the reader thread. Shared by the ProviderHost, by the thread that runs it, and by CallTable while the
/// plugin may use its handle.
class ActiveCall {
 public:
  ActiveCall(std::uint64_t id, ipc::FrameType type, std::int64_t deadline_ns, LoadedInstance& instance,
             AgentChannel& channel)
      : id(id),
        type(type),
        deadline_ns(deadline_ns),
        instance(instance),
        channel_(channel) {}
  ~ActiveCall();
  ActiveCall(const ActiveCall&) = delete;
  ActiveCall& operator=(const ActiveCall&) = delete;

  const std::uint64_t id;          ///< the agent's number, as in the frames
  const ipc::FrameType type;       ///< which call it is
  const std::int64_t deadline_ns;  ///< CLOCK_MONOTONIC
  LoadedInstance& instance;        ///< outlives the call
  std::thread::id owner;           ///< set before the handle exists

  bool ending() const { return cancelled_ || mono_ns() >= deadline_ns; }  ///< [any]
  bool cancelled() const { return cancelled_; }                           ///< by the agent. [any]
  int cancel_fd();  ///< an eventfd, owned by the call, readable after cancel() but not at the deadline; -1: none
  void cancel();    ///< wakes what waits in send() or permit()
  void add_credit(std::uint64_t bytes);             ///< the agent has handled that many
  void permitted(const ipc::PermitAnswer& answer);  ///< ignored if its request was given up

  // Owner thread only. A status goes to the plugin as it is:
  /// Collects records and sends a frame when 64 KiB or kMaxBatch are full. Returns OK, FINISH_SOON if the call is
  /// ending or nine tenths of the budget of a refresh are used, BUDGET once all of it is; else what send() returns.
  driftd_status emit(std::vector<core::Observation> batch);
  /// Sends a mark behind the collected records. For COMPLETE returns INVALID after a rejected record or outside of a
  /// refresh, and BUDGET if a record was refused; else what send() returns.
  driftd_status mark(core::Mark mark);
  /// Sends a diagnostic behind the collected records and remembers it as the reason of a failure.
  driftd_status diagnose(core::Diagnostic diagnostic);
  /// Sends a diagnostic about a record that breaks a rule; only for the first 20 of a call.
  void report_bad_record(core::Diagnostic diagnostic);
  /// Sends under the credit, or waits for some. Returns OK, CANCELLED (also if the agent is gone) or DEADLINE.
  driftd_status send(ipc::FrameType type, std::string payload);
  /// Sends without credit what is rate-limited elsewhere.
  driftd_status send_uncredited(ipc::FrameType type, std::string payload);
  driftd_status flush();  ///< sends the collected records
  /// Asks the agent and waits for its answer. Returns that, or CANCELLED or DEADLINE if the call ends first.
  driftd_status permit(const std::string& bucket, std::uint32_t tokens);
  /// A record was rejected: from now on this call may not send COMPLETE.
  void forbid_complete() { complete_forbidden_ = true; }
  /// A deliver of `events` begins: each may be settled once.
  void expect_settlements(std::size_t events) { settled_.assign(events, false); }
  const std::vector<bool>& settled() const { return settled_; }  ///< by event; empty outside of deliver
  void note_settled(std::size_t event) { settled_[event] = true; }
  bool accepts_records() const;                    ///< refresh, read and watch do
  bool budget_hit() const { return budget_hit_; }  ///< a record was refused
  /// Returns true if the call was asked to finish because of a budget and then left things out.
  bool stopped_early() const { return budget_neared_ && !completed_; }
  /// The budget that was exceeded or nearly reached.
  const char* budget_name() const { return by_bytes_ ? "bytes" : "records"; }
  const core::Diagnostic& last_diagnostic() const { return last_; }  ///< empty if there was none

 private:
  AgentChannel& channel_;
  std::atomic<bool> cancelled_{false};
  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t in_flight_ = 0, ticket_ = 0;
  std::optional<ipc::PermitAnswer> permitted_;
  int cancel_fd_ = -1;
  std::vector<core::Observation> batch_;
  std::size_t batch_bytes_ = 0;
  std::uint64_t records_ = 0, bytes_ = 0, bad_records_ = 0;
  bool budget_hit_ = false, budget_neared_ = false, by_bytes_ = false, complete_forbidden_ = false, completed_ = false;
  core::Diagnostic last_;
  std::vector<bool> settled_;
};

/// Returns about how many bytes a record takes on the wire and in memory.
std::size_t approximate_size(const core::Observation& o);

/// The call whose plugin function runs on this thread; nullptr if none.
ActiveCall* running_call();
void set_running_call(ActiveCall* call);

/// Handles of all calls of this process: index + generation. [any thread]
class CallTable {
 public:
  static CallTable& instance();
  driftd_call add(std::shared_ptr<ActiveCall> call);
  void remove(driftd_call handle);
  std::shared_ptr<ActiveCall> find(driftd_call handle);

 private:
  struct Slot {
    std::uint32_t generation = 1;
    std::shared_ptr<ActiveCall> call;
  };
  std::mutex mutex_;
  std::vector<Slot> slots_;
};

}  // namespace driftd::worker
