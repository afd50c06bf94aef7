// SPDX-License-Identifier: Apache-2.0
// What the tests of the state backends share: a configuration, a probe, and what every failure has in common.
#pragma once

#include <gmock/gmock.h>

#include "support/provider_probe.hpp"
#include "support/tofu.hpp"

namespace driftd::test {

/// The configuration of `terraform_data.a` with this input.
inline std::string resource(int value) {
  return "resource \"terraform_data\" \"a\" { input = " + std::to_string(value) + " }\n";
}

/// A state of version 4 with `terraform_data.a`, whose input is this value.
inline std::string small_state(int value) {
  return R"({"version":4,"terraform_version":"1.9.0","serial":1,"lineage":"abc","outputs":{},"resources":[)"
         R"({"mode":"managed","type":"terraform_data","name":"a","provider":"p","instances":[)"
         R"({"attributes":{"input":{"value":)" +
         std::to_string(value) + "}}}]}]}";
}

inline const std::map<std::string, std::string> kSecrets = {
    {"token-of-password", "password-canary"}, {"token-of-token", "token-canary"}, {"token-of-wrong", "wrong-canary"}};

inline ProviderProbe probe_of(const nlohmann::json& backend, nlohmann::json more = {},
                              std::map<std::string, std::string> secrets = kSecrets) {
  nlohmann::json settings = {{"backend", backend}, {"call_timeout_ms", 5000}};
  if (more.is_object()) settings.update(more);
  return ProviderProbe("providers/terraform.so", settings, std::move(secrets));
}

inline nlohmann::json input_of(const Collected& seen) {
  return seen.body("instance", "terraform_data.a")["input"]["value"];
}

/// Expects a failure of `code` that concludes nothing and quotes no secret. `part` is in its text or right.
inline void expect_failure(const Collected& seen, driftd_status code, const std::string& part) {
  EXPECT_EQ(seen.status, code) << (seen.diagnostics.empty() ? "" : seen.diagnostics[0].text);
  EXPECT_TRUE(seen.complete.empty());
  EXPECT_FALSE(seen.unchanged);
  ASSERT_EQ(seen.diagnostics.size(), 1u);
  EXPECT_THAT(seen.diagnostics[0].text + " " + seen.diagnostics[0].right, testing::HasSubstr(part));
  EXPECT_THAT(seen.diagnostics[0].text, testing::Not(testing::HasSubstr("canary")));
}

/// Makes the server fail in the ways that all state backends over HTTP share.
inline void expect_failures_conclude_nothing(ProviderProbe& probe, StateServer& server, const std::string& cursor) {
  for (const auto& [status, code] : std::vector<std::pair<int, driftd_status>>{
           {401, DRIFTD_UNAUTHENTICATED}, {403, DRIFTD_DENIED}, {500, DRIFTD_UNAVAILABLE}, {503, DRIFTD_UNAVAILABLE}}) {
    server.control({{"status", status}, {"body", "token-canary"}});
    expect_failure(probe.refresh(cursor), code, std::to_string(status));
    expect_failure(probe.refresh(), code, std::to_string(status));
    EXPECT_EQ(probe.read({{"instance", "terraform_data.a"}}).status, code) << "a failure confirms no deletion";
    EXPECT_NE(probe.health().health.state, static_cast<std::uint32_t>(DRIFTD_HEALTH_UP));
  }
  server.control({{"status", 429}, {"headers", {{"Retry-After", "7"}}}});
  const auto throttled = probe.refresh(cursor);
  expect_failure(throttled, DRIFTD_THROTTLED, "429");
  EXPECT_EQ(throttled.diagnostics[0].retry_after_ms, 7000);
  server.control({{"cut", true}});
  const auto cut = probe.refresh();
  EXPECT_TRUE(cut.status == DRIFTD_UNAVAILABLE || cut.status == DRIFTD_CORRUPT) << cut.status;
  EXPECT_TRUE(cut.complete.empty());
  EXPECT_TRUE(cut.records.empty()) << "a state that came in part must give no record";
  server.stop();
  expect_failure(probe.refresh(cursor), DRIFTD_UNAVAILABLE, "127.0.0.1");
  EXPECT_EQ(probe.health().health.state, static_cast<std::uint32_t>(DRIFTD_HEALTH_DOWN));
}

}  // namespace driftd::test
