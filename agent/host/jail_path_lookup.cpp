// SPDX-License-Identifier: Apache-2.0
#include "host/jail_path_lookup.hpp"

#include <algorithm>
#include <atomic>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <system_error>
#include <thread>

#include "base/log.hpp"

namespace driftd::host {
namespace {

using Steady = std::chrono::steady_clock;
constexpr long kMaxThreads = 512;
constexpr std::chrono::milliseconds kShortest{1}, kLongest{50};  // between two looks at the answer

Task<void> pause(asio::any_io_executor core, std::chrono::milliseconds wait) {
  asio::steady_timer timer(core, wait);
  boost::system::error_code ignored;  // nobody cancels it
  co_await timer.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
}

}  // namespace

/// The answer of one lookup. The thread writes `found`, then `there`; nobody reads `found` before `there` is true.
struct JailPathLookup::Answer {
  JailPaths found;
  std::atomic<bool> there = false;
};

bool JailPathLookup::hangs(const std::string& backend) {
  const auto found = hanging_.find(backend);
  if (found == hanging_.end()) return false;
  if (!found->second->there) return true;
  log::room("host").info("[{}] the file system of its settings answers again", backend);
  hanging_.erase(found);
  return false;
}

Task<std::optional<JailPaths>> JailPathLookup::find_paths(std::shared_ptr<JailPathLookup> self,
                                                          asio::any_io_executor core, Request request) {
  if (self->hangs(request.backend)) co_return std::nullopt;
  const std::string backend = request.backend;
  const auto until = Steady::now() + kPatience;
  while (self->running_.use_count() > kMaxThreads && Steady::now() < until) co_await pause(core, kShortest);
  if (self->running_.use_count() > kMaxThreads) co_return std::nullopt;
  const auto answer = std::make_shared<Answer>();
  try {
    std::thread([answer, request = std::move(request), find = self->find, counted = self->running_] {
      try {
        answer->found = find(request);
      } catch (const std::exception& failed) {
        answer->found.refused = {std::string("cannot look at the paths of its settings: ") + failed.what()};
      }
      answer->there = true;
    }).detach();
  } catch (const std::system_error& none) {
    log::room("host").warn("[{}] no thread to look at the paths of its settings: {}", backend, none.what());
    co_return std::nullopt;
  }
  for (auto wait = kShortest; !answer->there && Steady::now() < until; wait = std::min(wait * 2, kLongest))
    co_await pause(core, wait);
  if (answer->there) co_return std::move(answer->found);
  self->hanging_[backend] = answer;
  log::room("host").warn(
      "[{}] a file system of its settings has not answered for {} ms: until it does, no worker is started for "
      "this backend, and what is replaced there is not noticed",
      backend, kPatience.count());
  co_return std::nullopt;
}

}  // namespace driftd::host
