// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gmock/gmock.h>
#include <algorithm>

#include "support/postgres.hpp"
#include "support/provider_probe.hpp"
#include "support/redis.hpp"

namespace driftd::test {

/// A provider that reads `endpoint` as the README's role. `extra`: further settings, or others.
inline ProviderProbe postgres_probe(const std::string& endpoint, const nlohmann::json& extra = nlohmann::json::object(),
                                    const std::string& password = "CHANGE-ME") {
  nlohmann::json settings{
      {"endpoints", endpoint}, {"user", "driftd"}, {"password", "token-1"}, {"connect_timeout_ms", 2000}};
  settings.update(extra);
  return {"providers/postgres.so", settings, {{"token-1", password}}};
}

/// Refreshes without a cursor until `seen` holds, and returns the last refresh. A reload reaches a session a moment
/// after pg_reload_conf() has returned.
inline Collected refresh_until(ProviderProbe& probe, const std::function<bool(const Collected&)>& seen) {
  Collected last;
  EXPECT_TRUE(eventually([&] { return seen(last = probe.refresh()); })) << "the expected state was never seen";
  return last;
}

/// The grants of a record, sorted, each as `grantee:privilege`, with a `*` behind it if it was made WITH GRANT OPTION.
inline std::vector<std::string> grants(const nlohmann::json& body) {
  std::vector<std::string> out;
  for (const auto& one : body["grants"]) {
    out.push_back(one["grantee"].get<std::string>() + ":" + one["privilege"].get<std::string>() +
                  (one["grantable"].get<bool>() ? "*" : ""));
  }
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace driftd::test
