// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <boost/asio/steady_timer.hpp>
#include <memory>

#include "base/async_mutex.hpp"
#include "grpc/log_reading.hpp"

namespace driftd::rpc {

/// The far side of a stream. Core thread.
class FrameWriter {
 public:
  virtual ~FrameWriter() = default;
  /// Sends one message. The receiver's credit decides when Stream::written() follows; until then there is no other.
  virtual void write(std::string frame) = 0;
  /// Makes the message on its way fail, so that Stream::written(false) follows.
  virtual void abort() = 0;
  /// Ends the stream. Called once, with no message on its way; nothing follows it.
  virtual void finish(Status status) = 0;
};

/// What streams share. Must outlive them.
struct StreamContext {
  asio::any_io_executor core, io;
  core::Reader& reader;
  std::chrono::milliseconds heartbeat{30'000};
  /// So that streams which catch up leave threads of the io pool to others, two read at a time.
  std::array<AsyncMutex, 2> reading;
  std::uint64_t next = 0;  ///< which of the two the next stream uses
};

/// One Subscribe call: reads the log from its own place and sends one message after the other, each when the one before
/// it has left. It holds at most kMaxBatchBytes and one message, and no queue; other streams read for themselves. Core
/// thread.
class Stream : public std::enable_shared_from_this<Stream> {
 public:
  /// `writer` must live until its finish() was called.
  Stream(StreamContext& context, std::string subscriber, Filter filter, Start start, FrameWriter& writer);

  Task<void> run();  ///< ends with FrameWriter::finish(); call once
  void wake();       ///< the log may have more
  void written(bool ok);
  void cancel(Status why);  ///< the receiver has gone, or the agent stops
  const std::string& subscriber() const { return subscriber_; }
  std::int64_t after() const { return after_; }  ///< the last event that it has dealt with

 private:
  Task<Result<Beginning>> locate();
  Task<Status> begin();
  Task<Result<Batch>> read();
  Task<bool> send(std::string frame);
  Task<void> rest();

  StreamContext& context_;
  const std::string subscriber_;
  const std::shared_ptr<const Filter> filter_;
  const Start start_;
  FrameWriter& writer_;
  AsyncMutex& reading_;
  asio::steady_timer changed_;
  asio::steady_timer::time_point last_sent_{};
  std::uint64_t incarnation_ = 0;
  std::int64_t after_ = 0, newest_ = 0;
  bool woken_ = false, writing_ = false, write_failed_ = false;
  std::optional<Status> ended_;  ///< why it ends; empty: it goes on
};

}  // namespace driftd::rpc
