// SPDX-License-Identifier: Apache-2.0
#include "redis/watch.hpp"

#include <algorithm>
#include <poll.h>

#include "redis/client.hpp"
#include "redis/info.hpp"

namespace driftd::redis {
namespace {

using std::chrono::milliseconds;
constexpr milliseconds kShortest{1000}, kLongest{60'000};

/// Until cancelled, or so long. True: cancelled.
bool rest(sdk::Call& call, milliseconds most) {
  const auto until = Steady::now() + most;
  while (!call.cancelled()) {
    if (call.deadline_ns() <= std::chrono::steady_clock::now().time_since_epoch().count()) {
      throw sdk::Failure(DRIFTD_DEADLINE, "the call's deadline passed");
    }
    const auto left = std::chrono::ceil<milliseconds>(until - Steady::now()).count();
    if (left <= 0) return false;
    pollfd cancel{call.cancel_fd(), POLLIN, 0};
    ::poll(&cancel, 1, static_cast<int>(std::min<long long>(left, 1000)));
  }
  return true;
}

enum class Ended { no_sentinel, lost };

/// Listens at one address until the connection ends.
Ended listen(sdk::Call& call, const Settings& settings, const Address& address) {
  const Login& login = settings.sentinel ? settings.sentinel->login : settings.login;
  const auto client = Client::connect(call, address, login, settings, settings.call);
  const Reply info = client->command(call, {"INFO", "server"}, {}, "+info");
  if (role_of(parse_info(info.text)) != "sentinel") return Ended::no_sentinel;
  client->command(call, {"SUBSCRIBE", "+switch-master"}, "sentinel_master", "+subscribe &+switch-master");
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
      if (listen(call, settings, settings.addresses[i]) == Ended::no_sentinel) rest(call, std::chrono::hours(24 * 365));
      continue;
    } catch (const sdk::Failure& failure) {
      if (failure.code == DRIFTD_CANCELLED) return;
      if (failure.code == DRIFTD_DEADLINE) throw;
      // refresh and health say that it is down; here it is only tried again
      call.log(DRIFTD_LOG_DEBUG, failure.what());
    }
    rest(call, pause);
    pause = std::min(pause * 2, kLongest);
  }
}

}  // namespace driftd::redis
