// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gmock/gmock.h>

#include "support/provider_probe.hpp"
#include "support/redis.hpp"

namespace driftd::test {

/// A provider at `settings` as the README's user, password `pw-canary`.
inline ProviderProbe redis_probe(nlohmann::json settings, const std::string& password = "pw-canary") {
  settings["username"] = "driftd";
  settings["password"] = "token-1";
  if (settings.contains("sentinel")) {
    settings["sentinel"]["username"] = "driftd";
    settings["sentinel"]["password"] = "token-1";
  }
  return ProviderProbe("providers/redis.so", settings, {{"token-1", password}});
}

/// Refreshes without a cursor until `seen`.
inline Collected refresh_until(ProviderProbe& probe, const std::function<bool(const Collected&)>& seen,
                               std::chrono::milliseconds most = std::chrono::seconds(20)) {
  Collected last;
  EXPECT_TRUE(eventually([&] { return seen(last = probe.refresh()); }, most)) << "never seen";
  return last;
}

}  // namespace driftd::test
