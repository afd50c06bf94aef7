// SPDX-License-Identifier: Apache-2.0
// Runs a relay on a core thread of its own over an outbox in memory, for tests of one real sink with its real receiver.
#pragma once

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_future.hpp>
#include <functional>
#include <future>
#include <thread>

#include "delivery/relay.hpp"
#include "support/memory_outbox.hpp"

namespace driftd::test {

class RelayRunner {
 public:
  using MakeSink = std::function<Result<std::unique_ptr<core::Sink>>(asio::any_io_executor core,
                                                                     asio::any_io_executor io, const Clock& clock)>;
  /// `before` is the outbox as an earlier agent left it.
  explicit RelayRunner(MakeSink make, std::chrono::milliseconds check_every = std::chrono::milliseconds(300),
                       MemoryOutbox before = {})
      : outbox(std::move(before)) {
    delivery::RelaySettings settings;
    settings.check_every = check_every;
    relay_ = std::make_unique<delivery::Relay>(core_.get_executor(), outbox, clock_, settings);
    auto sink = make(core_.get_executor(), io_.get_executor(), clock_);
    if (!sink) throw std::runtime_error(sink.error().message);
    relay_->add_sink("s", "test", std::move(*sink));
    thread_ = std::thread([this] { core_.run(); });
    const Status started = on_core([this] { return asio::co_spawn(core_, relay_->start(), asio::use_future); }).get();
    if (!started) throw std::runtime_error(started.error().message);
  }
  ~RelayRunner() {
    on_core([this] { return asio::co_spawn(core_, relay_->stop(), asio::use_future); }).get();
    work_.reset();
    thread_.join();
    relay_.reset();
    io_.join();
  }
  /// Adds an event to the outbox and wakes the relay.
  void add(core::StoredEvent event) {
    on_core([&] {
      outbox.add(std::move(event));
      relay_->wake();
      return 0;
    });
  }
  /// Returns when no request is under way that only former secrets signed.
  Status use_secrets(std::vector<std::string> secrets) {
    const Status used = on_core([&] { return relay_->use_secrets("s", std::move(secrets)); });
    on_core([this] { return asio::co_spawn(core_, relay_->former_secrets_unused("s"), asio::use_future); }).get();
    return used;
  }
  /// Replays or drops all dead letters of the sink.
  void dead_letters(const std::string& verb) {
    auto done = on_core([&] { return asio::co_spawn(core_, relay_->dead_letter("s", verb, {}), asio::use_future); });
    if (const auto count = done.get(); !count) throw std::runtime_error(count.error().message);
  }
  core::SinkView view() {
    return on_core([this] { return relay_->views().at(0); });
  }
  template <class F>
  std::invoke_result_t<F> on_core(F f) {
    std::packaged_task<std::invoke_result_t<F>()> task(std::move(f));
    auto result = task.get_future();
    asio::post(core_, [&task] { task(); });
    return result.get();
  }

  /// These futures are ready when the executor has run a task, so they show whether it is blocked.
  std::future<void> soon_on_core() { return asio::post(core_, asio::use_future); }
  std::future<void> soon_on_io() { return asio::post(io_, asio::use_future); }

  MemoryOutbox outbox;

 private:
  SystemClock clock_;
  asio::io_context core_;
  asio::executor_work_guard<asio::io_context::executor_type> work_ = asio::make_work_guard(core_);
  asio::thread_pool io_{2};
  std::unique_ptr<delivery::Relay> relay_;
  std::thread thread_;
};

}  // namespace driftd::test
