// SPDX-License-Identifier: Apache-2.0
// The state backends http, s3 and pg, to which OpenTofu writes: a change is seen, a refresh without a change is cheap,
// and a failure says what is wrong and proves no deletion.
#include <gmock/gmock.h>

#include "backend_probe.hpp"
#include "support/postgres.hpp"
#include "support/redis.hpp"

namespace driftd::test {
namespace {

using nlohmann::json;
using testing::ElementsAre;

TEST(TerraformBackends, HttpIsReadByItsEtagWithTheUserOfTheSettings) {
  StateServer server;
  server.control({{"user", "driftd"}, {"password", "password-canary"}});
  const std::string address = server.url("/state/platform");
  Tofu tofu;
  tofu.configure(resource(1), "backend \"http\" {\n address = \"" + address + "\"\n lock_address = \"" + address +
                                  "\"\n unlock_address = \"" + address +
                                  "\"\n username = \"driftd\"\n password = \"password-canary\"\n}");
  const json backend = {
      {"type", "http"}, {"address", address}, {"username", "driftd"}, {"password", "token-of-password"}};
  auto probe = probe_of(backend);
  expect_failure(probe.refresh(), DRIFTD_UNAVAILABLE, "there is no state");
  tofu.apply();
  const auto first = probe.refresh();
  ASSERT_EQ(first.status, DRIFTD_OK) << first.diagnostics[0].text;
  EXPECT_EQ(input_of(first), 1);
  server.requests();
  EXPECT_TRUE(probe.refresh(first.cursor).unchanged);
  EXPECT_THAT(server.requests(), ElementsAre("GET /state/platform 304"));
  tofu.configure(resource(2), "backend \"http\" {\n address = \"" + address +
                                  "\"\n username = \"driftd\"\n password = \"password-canary\"\n}");
  tofu.apply();
  EXPECT_EQ(input_of(probe.refresh(first.cursor)), 2);
  EXPECT_EQ(probe.health().health.state, static_cast<std::uint32_t>(DRIFTD_HEALTH_UP));
  EXPECT_FALSE(probe.health().health.system_identity.empty());
  auto wrong =
      probe_of({{"type", "http"}, {"address", address}, {"username", "driftd"}, {"password", "token-of-wrong"}});
  expect_failure(wrong.refresh(), DRIFTD_UNAUTHENTICATED, "the user driftd was refused");
  expect_failures_conclude_nothing(probe, server, first.cursor);
}

/// As nginx makes it: two writes of the same size within one second have the same.
TEST(TerraformBackends, AnEtagMadeOfATimeInSecondsStandsForNoWriteWithinThatSecond) {
  StateServer server;
  server.control({{"etag", "seconds"}});
  const std::string address = server.url("/state/platform");
  const auto put = [&](int value) {
    EXPECT_EQ(run({"curl", "-sf", "--data-binary", small_state(value), address}).code, 0);
    return run({"curl", "-sf", "-o", "/dev/null", "-w", "%header{etag}", address}).out;
  };
  auto probe = probe_of({{"type", "http"}, {"address", address}});
  Collected first;
  bool same = false;
  for (int i = 0; i < 20 && !same; ++i) {
    const std::string etag = put(1);
    first = probe.refresh();
    same = put(2) == etag;
  }
  ASSERT_TRUE(same) << "no two writes within one second";
  ASSERT_EQ(input_of(first), 1);
  Collected last = probe.refresh(first.cursor);
  EXPECT_EQ(input_of(last), 2);
  server.requests();
  EXPECT_TRUE(eventually([&] {
    const Collected next = probe.refresh(last.cursor);
    if (!next.unchanged) last = next;
    return server.requests() == std::vector<std::string>{"GET /state/platform 304"};
  })) << "a state that was written long ago is not transferred again";
}

class TerraformS3 : public testing::Test {
 protected:
  static json backend(const Moto& moto, const std::string& user) {
    return {{"type", "s3"},
            {"bucket", "states"},
            {"key", "platform/terraform.tfstate"},
            {"region", "eu-central-1"},
            {"use_path_style", true},
            {"endpoints", {{"s3", moto.url()}}},
            {"access_key", moto.keys()[user]["access"]},
            {"secret_key", "token-of-secret"}};
  }
  static ProviderProbe probe_as(const Moto& moto, const std::string& user, json more = {}) {
    return probe_of(backend(moto, user), std::move(more), {{"token-of-secret", moto.keys()[user]["secret"]}});
  }
};

TEST_F(TerraformS3, WhatOpenTofuWritesIsReadByItsEtagAndVersion) {
  Moto moto(false);
  const json& writer = moto.keys()["writer"];
  const auto lines =
      "backend \"s3\" {\n bucket = \"states\"\n key = \"platform/terraform.tfstate\"\n region = \"eu-central-1\"\n"
      " endpoints = { s3 = \"" +
      moto.url() +
      "\" }\n use_path_style = true\n skip_credentials_validation = true\n"
      " skip_requesting_account_id = true\n skip_metadata_api_check = true\n skip_region_validation = true\n "
      "access_key = \"" +
      writer["access"].get<std::string>() + "\"\n secret_key = \"" + writer["secret"].get<std::string>() + "\"\n}";
  Tofu tofu;
  tofu.configure(resource(1), lines);
  auto probe = probe_as(moto, "writer");
  expect_failure(probe.refresh(), DRIFTD_UNAVAILABLE, "there is no state");
  tofu.apply();
  const auto first = probe.refresh();
  ASSERT_EQ(first.status, DRIFTD_OK) << first.diagnostics[0].text;
  EXPECT_EQ(input_of(first), 1);
  EXPECT_FALSE(first.records[0].metadata.at("state_version").empty());
  moto.requests();
  EXPECT_TRUE(probe.refresh(first.cursor).unchanged);
  EXPECT_THAT(moto.requests(), ElementsAre("GET /states/platform/terraform.tfstate 304"));
  tofu.configure(resource(2), lines);
  tofu.apply();
  EXPECT_EQ(input_of(probe.refresh(first.cursor)), 2);
  tofu.run({"workspace", "new", "prod"});
  tofu.apply();
  EXPECT_EQ(input_of(probe_as(moto, "writer", {{"workspace", "prod"}}).refresh()), 2);
}

TEST_F(TerraformS3, SignaturesAreRightAndRefusalsAreNamed) {
  Moto moto(true);
  Tofu tofu;
  tofu.configure(resource(1));
  tofu.apply();
  const json& writer = moto.keys()["writer"];
  const Output put = run({"curl", "-sf", "--aws-sigv4", "aws:amz:eu-central-1:s3", "-u",
                          writer["access"].get<std::string>() + ":" + writer["secret"].get<std::string>(), "-H",
                          "x-amz-content-sha256: UNSIGNED-PAYLOAD", "-T", tofu.state_file(),
                          moto.url() + "/states/platform/terraform.tfstate"});
  ASSERT_EQ(put.code, 0) << put.out << put.err;
  const auto first = probe_as(moto, "writer").refresh();
  ASSERT_EQ(first.status, DRIFTD_OK) << first.diagnostics[0].text;
  EXPECT_EQ(input_of(first), 1);
  expect_failure(probe_as(moto, "stranger").refresh(), DRIFTD_DENIED,
                 "s3:GetObject on arn:aws:s3:::states/platform/terraform.tfstate");
  auto wrong = probe_of(backend(moto, "writer"), {}, {{"token-of-secret", "wrong-canary"}});
  expect_failure(wrong.refresh(), DRIFTD_UNAUTHENTICATED, "SignatureDoesNotMatch");
  json other = backend(moto, "writer");
  other["bucket"] = "no-such-bucket";
  expect_failure(probe_of(other, {}, {{"token-of-secret", writer["secret"]}}).refresh(), DRIFTD_UNAVAILABLE,
                 "NoSuchBucket");
}

TEST(TerraformBackends, PgIsReadByTheServersMd5WithTheRightsOfTheReadme) {
  PostgresServer server({{"log_statement = all"}, false, nullptr});
  // How often the log has the statement that reads the md5, and the one that reads the state.
  const auto count = [&](const std::string& statement) {
    const std::string log = server.log();
    std::size_t out = 0;
    for (auto at = log.find(statement); at != std::string::npos; at = log.find(statement, at + 1)) ++out;
    return out;
  };
  const std::string md5 = "SELECT md5(data), length(data) FROM", state = "SELECT substr(data, 1, ";
  server.sql("CREATE DATABASE tf");
  server.sql("CREATE ROLE tofu LOGIN PASSWORD 'tofu-canary'; GRANT ALL ON DATABASE tf TO tofu");
  server.sql("GRANT ALL ON SCHEMA public TO tofu", "tf");
  server.sql("CREATE ROLE driftd LOGIN PASSWORD 'password-canary'");
  const std::string at = "@" + server.endpoint() + "/tf?sslmode=disable";
  const std::string lines = "backend \"pg\" {\n conn_str = \"postgres://tofu:tofu-canary" + at + "\"\n}";
  auto probe = probe_of({{"type", "pg"}, {"conn_str", "token-of-conn"}}, {},
                        {{"token-of-conn", "postgres://driftd:password-canary" + at}});
  expect_failure(probe.refresh(), DRIFTD_UNAVAILABLE, "there is no state");
  Tofu tofu;
  tofu.configure(resource(1), lines);
  tofu.apply();
  expect_failure(probe.refresh(), DRIFTD_DENIED, "USAGE ON SCHEMA and SELECT ON \"terraform_remote_state\".\"states\"");
  server.sql(readme_grants("terraform", "sql"), "tf");
  const auto first = probe.refresh();
  ASSERT_EQ(first.status, DRIFTD_OK) << first.diagnostics[0].text;
  EXPECT_EQ(input_of(first), 1);
  const auto asked = count(md5), downloaded = count(state);
  EXPECT_GE(downloaded, 1u);
  EXPECT_TRUE(probe.refresh(first.cursor).unchanged);
  EXPECT_EQ(count(md5), asked + 1);
  EXPECT_EQ(count(state), downloaded) << "an unchanged state was downloaded again";
  tofu.configure(resource(2), lines);
  tofu.apply();
  const auto second = probe.refresh(first.cursor);
  EXPECT_EQ(input_of(second), 2);
  tofu.run({"workspace", "new", "prod"});
  tofu.apply();
  auto prod = probe_of({{"type", "pg"}, {"conn_str", "token-of-conn"}}, {{"workspace", "prod"}},
                       {{"token-of-conn", "postgres://driftd:password-canary" + at}});
  EXPECT_EQ(input_of(prod.refresh()), 2);
  EXPECT_EQ(probe.health().health.state, static_cast<std::uint32_t>(DRIFTD_HEALTH_UP));
  EXPECT_FALSE(probe.health().health.system_identity.empty());
  server.restart();
  EXPECT_TRUE(probe.refresh(second.cursor).unchanged)
      << "a restart of the server between two refreshes is not a failure";
  auto wrong = probe_of({{"type", "pg"}, {"conn_str", "token-of-conn"}}, {},
                        {{"token-of-conn", "postgres://driftd:wrong-canary" + at}});
  expect_failure(wrong.refresh(), DRIFTD_UNAUTHENTICATED, "conn_str");
  auto garbage = probe_of({{"type", "pg"}, {"conn_str", "token-of-conn"}}, {}, {{"token-of-conn", "canary canary"}});
  expect_failure(garbage.refresh(), DRIFTD_INVALID, "conn_str");
  server.stop();
  expect_failure(probe.refresh(second.cursor), DRIFTD_UNAVAILABLE, "127.0.0.1");
  EXPECT_EQ(probe.read({{"instance", "terraform_data.a"}}).status, DRIFTD_UNAVAILABLE);
  EXPECT_EQ(probe.health().health.state, static_cast<std::uint32_t>(DRIFTD_HEALTH_DOWN));
}

}  // namespace
}  // namespace driftd::test
