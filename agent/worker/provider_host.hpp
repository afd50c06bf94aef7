// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>

#include "ipc/messages.hpp"
#include "ipc/plugin_file.hpp"
#include "worker/active_call.hpp"
#include "worker/call_threads.hpp"
#include "worker/process_guard.hpp"

namespace driftd::worker {

/// Runs one plugin instance for the agent at the other end of a socket. It is the whole of a worker process and the
/// inside of an in-process session. Calls run on threads of their own: as many as the plugin declares, and one each for
/// watch, health, diff, upgrade, apply and flush. Three sorts of threads: the reader (serve()), which sorts frames and
/// runs of the plugin only load, wake and close; the threads of calls; and those that the plugin makes.
class ProviderHost {
 public:
  /// Called before any code of the plugin runs and before this object makes a thread. Returns the jail that holds the
  /// process from then on; an error refuses the load.
  using BeforeLoad = std::function<Result<std::string>(const ipc::Load&)>;
  /// Takes ownership of both descriptors: the protocol and the plugin's sealed bytes.
  ProviderHost(int fd, int library, BeforeLoad before = {})
      : channel_(fd),
        library_(library),
        before_load_(std::move(before)) {}
  ~ProviderHost();
  /// Serves until the agent sends stop or closes the socket; then cancels and awaits all calls and closes the instance.
  /// Returns `corrupt` if a frame is invalid. [its own thread]
  Status serve();

 private:
  using Job = driftd_status (ProviderHost::*)(ActiveCall&, const std::string& payload, driftd_call, std::string& body);

  bool handle(ipc::Frame frame);  ///< [reader] false: stop
  void load(const ipc::Frame& frame);
  void open(ipc::Frame frame);
  void start(ipc::Frame frame);  ///< [reader] any other call; refused with `unavailable` before open
  void post(CallThreads& threads, std::shared_ptr<ActiveCall> call, std::string payload, Job job);
  void run(const std::shared_ptr<ActiveCall>& call, const std::string& payload, Job job);  ///< [thread of the call]
  void report_changes(std::string_view during);
  void answer(ActiveCall& call, driftd_status status, std::string body, const std::string& thrown);
  void refuse(std::uint64_t call, Code code, std::string message);  ///< the result of a call that never began
  void cancel(std::uint64_t id);                                    ///< and wakes the plugin; nothing if it has ended
  std::shared_ptr<ActiveCall> find(std::uint64_t id);               ///< null if it has ended
  void finish();                                                    ///< cancels and awaits all, closes the instance

  // One for each call, on its thread: decodes the payload, calls the plugin, and encodes its answer into the last
  // argument. INVALID if the payload cannot be decoded; else the plugin's status, or INTERNAL or CORRUPT for an answer
  // that the ABI does not allow.
  driftd_status do_open(ActiveCall&, const std::string&, driftd_call, std::string&);
  driftd_status do_refresh(ActiveCall&, const std::string&, driftd_call, std::string&);
  driftd_status do_read(ActiveCall&, const std::string&, driftd_call, std::string&);
  driftd_status do_health(ActiveCall&, const std::string&, driftd_call, std::string&);
  driftd_status do_watch(ActiveCall&, const std::string&, driftd_call, std::string&);
  driftd_status do_demote(ActiveCall&, const std::string&, driftd_call, std::string&);
  driftd_status do_discover(ActiveCall&, const std::string&, driftd_call, std::string&);
  driftd_status do_upgrade(ActiveCall&, const std::string&, driftd_call, std::string&);
  driftd_status do_apply(ActiveCall&, const std::string&, driftd_call, std::string&);
  // Of a sink plugin:
  driftd_status open_sink(driftd_call handle, driftd_instance* made);
  driftd_status do_deliver(ActiveCall&, const std::string&, driftd_call, std::string&);
  driftd_status do_flush(ActiveCall&, const std::string&, driftd_call, std::string&);
  void take_part(ipc::Frame frame);       ///< [reader]
  ipc::Frame assembled(ipc::Frame last);  ///< [reader] with the parts that came before it

  AgentChannel channel_;
  int library_;  ///< -1 once load has taken it
  const BeforeLoad before_load_;
  LoadedInstance loaded_;                        ///< the calls hold references to it
  std::unique_ptr<ProcessGuard> process_guard_;  ///< only in a worker process; in-process this is the agent's own state
  std::atomic<driftd_instance> instance_{nullptr};              ///< the plugin's own; set before opened_
  std::atomic<bool> opened_{false};                             ///< calls may start, and close() is due
  std::mutex mutex_;                                            // guards calls_
  std::map<std::uint64_t, std::shared_ptr<ActiveCall>> calls_;  ///< by the agent's number, until they are answered
  std::unique_ptr<CallThreads> call_threads_;                   ///< null until loaded: describe says how many
  CallThreads watch_thread_{1}, health_thread_{1}, demote_thread_{1}, upgrade_thread_{1}, apply_thread_{1},
      flush_thread_{1};
  std::string parts_;  ///< the beginning of a deliver; reader thread
};

}  // namespace driftd::worker
