// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gmock/gmock.h>

#include "support/provider_probe.hpp"
#include "support/redis.hpp"

namespace driftd::test {

/// A provider with these settings that logs in as the README's user. The tests give this user the password `pw-canary`.
inline ProviderProbe redis_probe(nlohmann::json settings, const std::string& password = "pw-canary") {
  settings["username"] = "driftd";
  settings["password"] = "token-1";
  if (settings.contains("sentinel")) {
    settings["sentinel"]["username"] = "driftd";
    settings["sentinel"]["password"] = "token-1";
  }
  return ProviderProbe("providers/redis.so", settings, {{"token-1", password}});
}

/// describe says that the schema of each kind names every attribute: rules for other paths are warned of.
inline void expect_named_by_schema(const Collected& seen) {
  const auto schema = nlohmann::json::parse(read_file(DRIFTD_SOURCE_DIR "/plugins/redis/schema.json"));
  EXPECT_FALSE(seen.records.empty());
  for (const auto& record : seen.records) {
    const auto& attributes = schema.at("kinds").at(record.kind).at("attributes");
    const auto body = nlohmann::json::parse(record.body);
    for (const auto& [name, value] : body.items()) {
      bool named = false;
      for (const auto& [pattern, rule] : attributes.items())
        named = named || pattern.substr(0, pattern.find_first_of(".[")) == name;
      EXPECT_TRUE(named) << record.kind << " has " << name;
    }
  }
}

/// Refreshes without a cursor until `seen` holds, for at most `max`. Returns the last refresh.
inline Collected refresh_until(ProviderProbe& probe, const std::function<bool(const Collected&)>& seen,
                               std::chrono::milliseconds max = std::chrono::seconds(20)) {
  Collected last;
  EXPECT_TRUE(eventually([&] { return seen(last = probe.refresh()); }, max)) << "the expected state was never seen";
  return last;
}

}  // namespace driftd::test
