// SPDX-License-Identifier: Apache-2.0
// Runs coroutines of sessions on the test's own thread, with a deadline that fails the test.
#pragma once

#include <gtest/gtest.h>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <memory>
#include <optional>
#include <stdexcept>

#include "base/task.hpp"
#include "host/host.hpp"
#include "support/patience.hpp"

namespace driftd::test {

class Core {
 public:
  asio::io_context& context() { return context_; }
  asio::any_io_executor executor() { return context_.get_executor(); }

  /// Returns the value of `task`. Throws, which fails the test, if it takes longer than `timeout` times kPatience.
  template <class T>
  T run(Task<T> task, std::chrono::seconds timeout = std::chrono::seconds(60)) {
    const auto ended = std::make_shared<Ended<T>>();  // a task that ends after the timeout still writes to it
    asio::co_spawn(context_, std::move(task), [ended](std::exception_ptr e, T value) {
      ended->thrown = e;
      ended->value.emplace(std::move(value));
    });
    until([&] { return ended->value.has_value(); }, timeout);
    if (ended->thrown) std::rethrow_exception(ended->thrown);
    return std::move(*ended->value);
  }
  void run(Task<void> task, std::chrono::seconds timeout = std::chrono::seconds(60)) {
    const auto done = std::make_shared<bool>(false);
    asio::co_spawn(context_, std::move(task), [done](std::exception_ptr) { *done = true; });
    until([&] { return *done; }, timeout);
  }
  /// Starts `task` and stores its value in `out`, which must outlive it.
  template <class T>
  void start(Task<T> task, std::optional<T>& out) {
    asio::co_spawn(context_, std::move(task), [&out](std::exception_ptr, T value) { out.emplace(std::move(value)); });
  }
  /// Runs what is ready until `condition` is true. Throws, which fails the test, after `timeout` times kPatience.
  template <class F>
  void until(F condition, std::chrono::seconds timeout = std::chrono::seconds(60)) {
    const auto end = std::chrono::steady_clock::now() + timeout * kPatience;
    while (!condition()) {
      context_.restart();
      if (std::chrono::steady_clock::now() >= end) throw std::runtime_error("the condition did not come true in time");
      context_.run_one_for(std::chrono::milliseconds(50));
    }
  }

 private:
  template <class T>
  struct Ended {
    std::optional<T> value;
    std::exception_ptr thrown;
  };
  asio::io_context context_;
};

/// Returns options for providers in build/<preset>/tests/providers, with the real worker program.
inline host::HostOptions host_options(Core& core) {
  host::HostOptions options;
  options.core = core.executor();
  options.plugin_dirs = {DRIFTD_BINARY_DIR "/tests/providers"};
  options.worker = DRIFTD_BINARY_DIR "/bin/driftd-provider-host";
  options.jail_kills = true;
  return options;
}

/// The pages of records in the order in which they arrived.
struct Pages {
  std::vector<core::RecordPage> all;
  std::size_t records() const {
    std::size_t n = 0;
    for (const auto& page : all) n += page.records.size();
    return n;
  }
  std::vector<core::Mark> marks() const {
    std::vector<core::Mark> out;
    for (const auto& page : all) out.insert(out.end(), page.marks.begin(), page.marks.end());
    return out;
  }
};
inline Task<Status> keep_page(std::shared_ptr<Pages> to, core::RecordPage page) {
  to->all.push_back(std::move(page));
  co_return Status{};
}
/// Returns a handler that appends each page to `to`.
inline core::PageHandler keep(std::shared_ptr<Pages> to) {
  return [to](core::RecordPage page) { return keep_page(to, std::move(page)); };
}

}  // namespace driftd::test
