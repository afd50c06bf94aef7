// SPDX-License-Identifier: Apache-2.0
#include "redis/watch.hpp"

#include <algorithm>
#include <functional>

#include "common/wait_until.hpp"
#include "redis/client.hpp"
#include "redis/info.hpp"

namespace driftd::redis {
namespace {

using std::chrono::milliseconds;
constexpr milliseconds kShortest{1000}, kLongest{60'000};

/// Listens at one address until the connection ends, which throws; returns at once if no Sentinel answers. `heard` is
/// called when the subscription is active.
void listen(sdk::Call& call, const Settings& settings, const Address& address, const std::function<void()>& heard) {
  const Login& login = settings.sentinel ? settings.sentinel->login : settings.login;
  const auto client = Client::connect(call, address, login, settings, settings.call);
  const Reply info = client->command(call, {"INFO", "server"}, {}, "+info");
  if (role_of(parse_info(info.text)) != "sentinel") return;
  client->command(call, {"SUBSCRIBE", "+switch-master"}, "sentinel_master", "+subscribe &+switch-master");
  heard();
  call.bookmark("");  // what happened before we listened
  while (true) {
    const Reply message = client->message(call);
    if (!message.list.empty() && message.list[0].text == "message") call.bookmark("");
  }
}

}  // namespace

void watch_sentinels(sdk::Call& call, const Settings& settings) {
  milliseconds pause = kShortest;
  for (std::size_t i = 0; !call.cancelled(); i = (i + 1) % settings.addresses.size()) {
    try {
      listen(call, settings, settings.addresses[i], [&] { pause = kShortest; });
      common::wait_until(call, Steady::time_point::max());  // a plain server has nothing to push
      continue;
    } catch (const sdk::Failure& failure) {
      if (failure.code == DRIFTD_CANCELLED) return;
      if (failure.code == DRIFTD_DEADLINE) throw;
      // Refresh and health report that it is down; here it is only retried.
      call.log(DRIFTD_LOG_DEBUG, failure.what());
    }
    common::wait_until(call, Steady::now() + pause);
    pause = std::min(pause * 2, kLongest);
  }
}

}  // namespace driftd::redis
