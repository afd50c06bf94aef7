// SPDX-License-Identifier: Apache-2.0
#include "postgres/watch.hpp"

#include <algorithm>

#include "common/wait_until.hpp"
#include "postgres/client.hpp"

namespace driftd::postgres {
namespace {

using std::chrono::milliseconds;
constexpr milliseconds kShortest{1000}, kLongest{60'000}, kLookAgain{300'000};

/// Returns false if nothing would send notifications.
bool listen(sdk::Call& call, const Settings& settings) {
  const auto client = connect(call, settings, settings.connect, settings.statement);
  const Rows rows = client->query(
      call,
      "SELECT EXISTS (SELECT FROM pg_event_trigger WHERE evtname = 'driftd_ddl' AND evtenabled <> 'D') AND NOT "
      "pg_is_in_recovery() AS told");
  if (!Fields(rows, 0).flag("told")) return false;
  client->query(call, "LISTEN driftd_ddl");
  call.bookmark("");  // what happened before we listened
  while (!call.cancelled()) {
    if (client->notified(call, kLookAgain))
      call.bookmark("");
    else
      client->query(call, "SELECT 1");  // a connection that died in silence is found out
  }
  return true;
}

}  // namespace

void watch_ddl(sdk::Call& call, const Settings& settings) {
  milliseconds pause = kShortest;
  while (!call.cancelled()) {
    try {
      if (!listen(call, settings)) common::wait_until(call, std::chrono::steady_clock::now() + kLookAgain);
      pause = kShortest;
      continue;
    } catch (const sdk::Failure& failure) {
      if (failure.code == DRIFTD_CANCELLED) return;
      if (failure.code == DRIFTD_DEADLINE) throw;
      // Refresh and health report that it is down; here it is only retried.
      call.log(DRIFTD_LOG_DEBUG, failure.what());
    }
    common::wait_until(call, std::chrono::steady_clock::now() + pause);
    pause = std::min(pause * 2, kLongest);
  }
}

}  // namespace driftd::postgres
