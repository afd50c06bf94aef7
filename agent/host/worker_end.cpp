// SPDX-License-Identifier: Apache-2.0
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>

#include "base/fatal.hpp"
#include "host/worker.hpp"

namespace driftd::host {
namespace {

/// Shared by the waiting and the reaping coroutine, either of which may end last.
struct End {
  End(asio::any_io_executor core, std::chrono::milliseconds timeout) : limit(core, timeout) {}
  asio::steady_timer limit;
  std::optional<std::string> how;
};

Task<void> reap(std::shared_ptr<Worker> worker, std::shared_ptr<End> end) {
  end->how = co_await worker->reap();
  end->limit.cancel();
}

}  // namespace

Task<std::optional<std::string>> wait_for_end(std::shared_ptr<Worker> worker, asio::any_io_executor core,
                                              std::chrono::milliseconds timeout) {
  const auto end = std::make_shared<End>(core, timeout);
  asio::co_spawn(core, reap(std::move(worker), end), fatal);
  boost::system::error_code woken;  // cancelled by the end, or expired
  if (!end->how) co_await end->limit.async_wait(asio::redirect_error(asio::use_awaitable, woken));
  co_return end->how;
}

}  // namespace driftd::host
