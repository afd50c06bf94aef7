// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/thread_pool.hpp>

namespace driftd::app {

/// The four named executors of the agent (ARCHITECTURE.md, Processes and threads). The agent has no other thread of its
/// own. `core` runs on the caller of run(); the others are joined by the destructor.
struct Executors {
  static constexpr std::size_t kIo = 4;
  explicit Executors(std::size_t io_threads = kIo) : io(io_threads) {}

  boost::asio::io_context core{1};
  boost::asio::thread_pool store{1};
  boost::asio::thread_pool io;
  boost::asio::thread_pool diff{2};

  ~Executors() {
    diff.join();
    io.join();
    store.join();
  }
};

}  // namespace driftd::app
