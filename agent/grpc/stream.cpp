// SPDX-License-Identifier: Apache-2.0
#include "grpc/stream.hpp"

#include <boost/asio/as_tuple.hpp>

#include "base/log.hpp"

namespace driftd::rpc {

Stream::Stream(StreamContext& context, std::string subscriber, Filter filter, Start start, FrameWriter& writer)
    : context_(context),
      subscriber_(std::move(subscriber)),
      filter_(std::make_shared<const Filter>(std::move(filter))),
      start_(start),
      writer_(writer),
      reading_(context.reading[context.next++ % context.reading.size()]),
      changed_(context.core) {}

Task<void> Stream::run() {
  const auto self = shared_from_this();
  const Status begun = co_await begin();
  if (!begun) cancel(begun);
  while (!ended_) {
    woken_ = false;
    auto batch = co_await read();
    if (!batch)
      cancel(fail(Code::unavailable, "the event log cannot be read now: " + batch.error().message +
                                         "; subscribe again with the last resume_token"));
    if (ended_) break;
    newest_ = batch->newest;
    for (auto& frame : batch->frames) {
      if (!co_await send(std::move(frame))) break;
    }
    if (ended_) break;
    after_ = batch->after;
    if (batch->at_end) co_await rest();
    const bool silent = asio::steady_timer::clock_type::now() - last_sent_ >= context_.heartbeat;
    if (!ended_ && silent) co_await send(heartbeat_frame({incarnation_, after_}, newest_));
  }
  writer_.finish(*ended_);
}

/// Returns after a wake-up, the end, or when a heartbeat is due.
Task<void> Stream::rest() {
  while (!woken_ && !ended_) {
    changed_.expires_at(last_sent_ + context_.heartbeat);
    const auto [error] = co_await changed_.async_wait(asio::as_tuple(asio::use_awaitable));
    if (!error) co_return;
  }
}

Task<Result<Beginning>> Stream::locate() {
  const std::int64_t at = start_.at == Start::At::token ? start_.token.seq : 0;
  const AsyncMutex::Guard held = co_await reading_.lock();
  DRIFTD_CO_TRY(const core::LogSlice log, co_await context_.reader.log(at, 0));
  std::int64_t first_above = 0;
  if (start_.at == Start::At::token && start_.token.incarnation < log.incarnation) {
    DRIFTD_CO_TRY(first_above, co_await context_.reader.first_above_incarnation(start_.token.incarnation));
  }
  incarnation_ = log.incarnation;
  newest_ = log.newest;
  co_return begin_at(start_, log, first_above);
}

Task<Status> Stream::begin() {
  DRIFTD_CO_TRY(const Beginning beginning, co_await locate());
  after_ = beginning.after;
  const ResumeToken token{incarnation_, after_};
  std::string position = position_frame(token, newest_);
  const bool sent = co_await send(std::move(position));
  if (!sent || !beginning.gap) co_return Status{};
  std::string gap = gap_frame(*beginning.gap, token);
  co_await send(std::move(gap));
  co_return Status{};
}

Task<Result<Batch>> Stream::read() {
  const AsyncMutex::Guard held = co_await reading_.lock();
  if (ended_) co_return Batch{};
  DRIFTD_CO_TRY(auto log, co_await context_.reader.log(after_, kMaxBatchEvents));
  const auto slice = std::make_shared<core::LogSlice>(std::move(log));
  auto work = [slice, after = after_, filter = filter_] { return Result<Batch>(make_batch(*slice, after, *filter)); };
  auto batch = co_await run_on(context_.io, std::move(work));
  co_return batch;
}

/// Returns false if the stream ends.
Task<bool> Stream::send(std::string frame) {
  if (ended_) co_return false;
  writing_ = true;
  writer_.write(std::move(frame));
  while (writing_) {
    changed_.expires_at(asio::steady_timer::time_point::max());
    co_await changed_.async_wait(asio::as_tuple(asio::use_awaitable));
  }
  last_sent_ = asio::steady_timer::clock_type::now();
  if (write_failed_) cancel(fail(Code::cancelled, "the subscriber has gone"));
  co_return !ended_;
}

void Stream::wake() {
  woken_ = true;
  if (!writing_) changed_.cancel();
}

void Stream::written(bool ok) {
  writing_ = false;
  write_failed_ = write_failed_ || !ok;
  changed_.cancel();
}

void Stream::cancel(Status why) {
  if (ended_) return;
  ended_ = std::move(why);
  if (writing_) writer_.abort();  // a receiver that does not read would hold it for ever
  changed_.cancel();
}

}  // namespace driftd::rpc
