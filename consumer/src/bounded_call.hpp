// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

namespace driftd::consumer {

/// Runs a function that may hang in the kernel (a file of a dead network mount) on a thread of its own and waits up to
/// `max_time`. Empty if it did not end, or if there is no thread for it; a thread that hangs goes on alone and its
/// result is dropped. `work` must own what it uses.
template <class T, class F>
std::optional<T> bounded_call(F work, std::chrono::milliseconds max_time) {
  struct Shared {
    std::mutex mutex;
    std::condition_variable done;
    std::optional<T> result;
  };
  auto shared = std::make_shared<Shared>();
  try {
    std::thread([shared, work = std::move(work)] {
      T result = work();
      const std::lock_guard lock(shared->mutex);
      shared->result = std::move(result);
      shared->done.notify_all();
    }).detach();
  } catch (const std::system_error&) {
    return std::nullopt;
  }
  std::unique_lock lock(shared->mutex);
  shared->done.wait_for(lock, max_time, [&] { return shared->result.has_value(); });
  return std::move(shared->result);
}

}  // namespace driftd::consumer
