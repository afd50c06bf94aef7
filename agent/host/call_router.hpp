// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "host/call.hpp"
#include "host/worker_channel.hpp"

namespace driftd::host {

/// Sends the calls of one backend to its worker, sorts the frames that come back, gives credit, and enforces deadlines:
/// cancel first, then kill. Owned by a Supervisor, whose workers are connected one after the other. Core thread.
class CallRouter : public std::enable_shared_from_this<CallRouter> {
 public:
  struct DeadlineHandlers {
    std::function<void(const Call&)> overdue;  ///< a call missed its deadline and is about to be cancelled
    std::function<void(std::string)> kill;     ///< a cancelled call did not end within the grace time; gets the reason
  };
  /// `grace` is the time that a worker has for the end of a cancelled call.
  CallRouter(asio::any_io_executor core, std::chrono::milliseconds grace) : core_(std::move(core)), grace_(grace) {}
  void on_deadline(DeadlineHandlers handlers) { handlers_ = std::move(handlers); }

  void connect(std::shared_ptr<WorkerChannel> channel) { channel_ = std::move(channel); }
  void disconnect() { channel_.reset(); }  ///< the worker has ended; its calls wait for fail_all()
  void fail_all(const Error& error);       ///< ends every running call with the error

  /// Sends a call to the worker. `cpu` is the processor time that the worker has used so far. The call is done at once
  /// with `unavailable` if there is no worker, and with `invalid` if the payload is longer than kMaxPayload, of a
  /// deliver kMaxDelivery.
  std::shared_ptr<Call> begin(ipc::FrameType type, std::string payload, Steady::time_point deadline,
                              std::chrono::milliseconds cpu);
  /// Returns a call that has failed and was never sent.
  std::shared_ptr<Call> refuse(ipc::FrameType type, Error why);
  /// Returns the next frame of a call and gives back its credit; nullopt if the queue is empty.
  std::optional<ipc::Frame> pop(Call& call);
  void cancel_all();  ///< each gets the grace time from now
  void cancel_watches();
  void abandon(Call& call);  ///< cancels a call that nobody waits for and drops what still arrives

  /// Returns the call of a frame; nullptr if it is not running.
  std::shared_ptr<Call> find(std::uint64_t id) const;
  /// Charges a frame to the credit of its call. Returns `invalid` if the call has none left: a worker of ours would
  /// have waited. The message continues a sentence that begins with "the worker", here and below.
  Status charge_credit(Call& call, const ipc::Frame& frame);
  /// Gives back the credit of a frame that was handled at once.
  void return_credit(Call& call, const ipc::Frame& frame);
  /// Queues a record, mark or diagnostic for its call. Returns `invalid` if that call has none.
  Status enqueue(Call& call, ipc::Frame frame);
  /// Queues verdicts for a deliver. Returns `invalid` if it is none, or if more frames came than it has events.
  Status enqueue_settled(Call& call, std::string payload);
  void finish(Call& call, ipc::CallResult result);  ///< the worker has answered; wakes who waits

  const Calls& running() const { return calls_; }
  bool only_watches() const;           ///< true if no call but watches is running
  std::string render_running() const;  ///< `refresh, read`; `watch` if nothing else is running; empty if nothing is

 private:
  void send_call(const Call& call, std::string payload);
  std::shared_ptr<Call> make(ipc::FrameType type, Steady::time_point deadline);
  void cancel(Call& call);
  void arm(Call& call);  ///< starts the timer of its deadline
  void expire(Call& call);
  void give_credit(Call& call);

  const asio::any_io_executor core_;
  const std::chrono::milliseconds grace_;
  DeadlineHandlers handlers_;
  std::shared_ptr<WorkerChannel> channel_;  ///< null while there is no worker
  Calls calls_;
  std::uint64_t next_call_ = 1;
};

}  // namespace driftd::host
