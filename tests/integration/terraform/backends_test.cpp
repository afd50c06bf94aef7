// SPDX-License-Identifier: Apache-2.0
// Each state backend that OpenTofu can write to: a change is seen, a refresh without a change is cheap, and a failure
// says what is wrong and proves no deletion.
#include <gmock/gmock.h>

#include "support/patience.hpp"
#include "support/postgres.hpp"
#include "support/provider_probe.hpp"
#include "support/redis.hpp"
#include "support/tofu.hpp"

namespace driftd::test {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

/// The configuration of `terraform_data.a` with this input.
std::string resource(int value) {
  return "resource \"terraform_data\" \"a\" { input = " + std::to_string(value) + " }\n";
}

const std::map<std::string, std::string> kSecrets = {
    {"token-of-password", "password-canary"}, {"token-of-token", "token-canary"}, {"token-of-wrong", "wrong-canary"}};

ProviderProbe probe_of(const json& backend, json more = {}, std::map<std::string, std::string> secrets = kSecrets) {
  json settings = {{"backend", backend}, {"call_timeout_ms", 5000}};
  if (more.is_object()) settings.update(more);
  return ProviderProbe("providers/terraform.so", settings, std::move(secrets));
}

json input_of(const Collected& seen) { return seen.body("instance", "terraform_data.a")["input"]["value"]; }

/// Expects a failure of `code` that concludes nothing and quotes no secret. `part` is in its text or right.
void expect_failure(const Collected& seen, driftd_status code, const std::string& part) {
  EXPECT_EQ(seen.status, code) << (seen.diagnostics.empty() ? "" : seen.diagnostics[0].text);
  EXPECT_TRUE(seen.complete.empty());
  EXPECT_FALSE(seen.unchanged);
  ASSERT_EQ(seen.diagnostics.size(), 1u);
  EXPECT_THAT(seen.diagnostics[0].text + " " + seen.diagnostics[0].right, HasSubstr(part));
  EXPECT_THAT(seen.diagnostics[0].text, Not(HasSubstr("canary")));
}

/// Makes the server fail in the ways that all state backends over HTTP share.
void expect_failures_conclude_nothing(ProviderProbe& probe, StateServer& server, const std::string& cursor) {
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

TEST(TerraformBackends, ConsulIsReadPlainGzippedAndInChunks) {
  StateServer server;  // not Consul, but a local server with its documented API, to which OpenTofu itself writes
  server.control({{"token", "token-canary"}});
  const auto lines = [&](const std::string& gzip) {
    return "backend \"consul\" {\n address = \"" + server.address() +
           "\"\n scheme = \"http\"\n path = \"tf/platform\"\n lock = false\n" +
           " access_token = \"token-canary\"\n gzip = " + gzip + "\n}";
  };
  const json backend = {
      {"type", "consul"}, {"address", server.address()}, {"path", "tf/platform"}, {"access_token", "token-of-token"}};
  Tofu tofu;
  tofu.configure(resource(1), lines("false"));
  auto probe = probe_of(backend);
  expect_failure(probe.refresh(), DRIFTD_UNAVAILABLE, "there is no state");
  tofu.apply();
  const auto plain = probe.refresh();
  EXPECT_EQ(input_of(plain), 1);
  server.requests();
  EXPECT_TRUE(probe.refresh(plain.cursor).unchanged);
  EXPECT_THAT(server.requests(), ElementsAre("GET /v1/kv/tf/platform?raw=true 200"));
  tofu.configure(resource(2), lines("true"));
  tofu.apply();
  const auto gzipped = probe.refresh(plain.cursor);
  EXPECT_EQ(input_of(gzipped), 2);
  tofu.configure(resource(3) +
                     "resource \"terraform_data\" \"big\" {\n input = join(\"\", [for i in range(1000) : "
                     "\"${sha512(i)}${sha512(-i)}${sha512(i + 0.5)}\"])\n}\n",
                 lines("false"));
  tofu.apply();
  server.requests();
  const auto chunked = probe.refresh(gzipped.cursor);
  EXPECT_EQ(input_of(chunked), 3);
  EXPECT_GE(server.requests().size(), 3u) << "one request for the list of chunks, and one for each chunk";
  // a workspace has a key of its own
  tofu.configure(resource(4), lines("false"));
  tofu.run({"workspace", "new", "prod"});
  tofu.apply();
  EXPECT_EQ(input_of(probe_of(backend, {{"workspace", "prod"}}).refresh()), 4);
  expect_failures_conclude_nothing(probe, server, chunked.cursor);
}

TEST(TerraformBackends, ConsulChunksAreReadBelowTheStatesOwnKeyAndNowhereElse) {
  StateServer server;
  const auto put = [&](const std::string& key, const std::string& value) {
    ASSERT_EQ(run({"curl", "-sf", "-X", "PUT", "--data-binary", value, server.url("/v1/kv/" + key)}).code, 0);
  };
  const std::string state =
      R"({"version":4,"terraform_version":"1.9.0","serial":1,"lineage":"site","outputs":{},"resources":[]})";
  for (const auto* key : {"tf/p/tfstate.abc/0", "tf/p-other/0", "tf/other"}) put(key, state);
  const auto read = [&](const std::string& path, const std::string& chunk) {
    put(path, R"({"current-hash":"abc","chunks":[")" + chunk + R"("]})");
    return probe_of({{"type", "consul"}, {"address", server.address()}, {"path", path}}).refresh().status;
  };
  EXPECT_EQ(read("tf/p", "tf/p/tfstate.abc/0"), DRIFTD_OK);
  EXPECT_EQ(read("tf/p", "tf/p-other/0"), DRIFTD_CORRUPT);
  EXPECT_EQ(read("tf/p", "tf/p/../other"), DRIFTD_CORRUPT);
  EXPECT_EQ(read("tf/p/", "tf/p/tfstate.abc/0"), DRIFTD_OK)
      << "Terraform's keys of chunks do not have the last slash of the path";
}

TEST(TerraformBackends, ConsulHintsWithinASecondOfAChange) {
  StateServer server;
  const std::string lines = "backend \"consul\" {\n address = \"" + server.address() +
                            "\"\n scheme = \"http\"\n path = \"tf/p\"\n lock = false\n}";
  Tofu tofu;
  tofu.configure(resource(1), lines);
  tofu.apply();
  auto probe = probe_of({{"type", "consul"}, {"address", server.address()}, {"path", "tf/p"}});
  tofu.configure(resource(2), lines);
  using Clock = std::chrono::steady_clock;
  bool applied = false;
  Clock::time_point changed, hinted;
  const auto seen = probe.watch(
      {},
      [&](const Collected& c) {
        if (c.marks > 1 && hinted == Clock::time_point{}) hinted = Clock::now();
        return c.marks > 1;
      },
      std::chrono::seconds(30),
      [&] {
        if (std::exchange(applied, true)) return;
        tofu.apply();
        changed = Clock::now();
      });
  EXPECT_GT(seen.marks, 1);
  EXPECT_LT(hinted - changed, kPatience * std::chrono::seconds(1));
}

TEST(TerraformBackends, ConsulsIndexOfZeroHidesNoChange) {
  StateServer server;
  server.control({{"index", "zero"}});
  const auto put = [&](int value) {
    const std::string state =
        R"({"version":4,"terraform_version":"1.9.0","serial":1,"lineage":"abc","outputs":{},"resources":[)"
        R"({"mode":"managed","type":"terraform_data","name":"a","provider":"p","instances":[)"
        R"({"attributes":{"input":{"value":)" +
        std::to_string(value) + "}}}]}]}";
    ASSERT_EQ(run({"curl", "-sf", "-X", "PUT", "--data-binary", state, server.url("/v1/kv/tf/p")}).code, 0);
  };
  put(1);
  auto probe = probe_of({{"type", "consul"}, {"address", server.address()}, {"path", "tf/p"}});
  const auto first = probe.refresh();
  EXPECT_EQ(input_of(first), 1);
  put(2);
  EXPECT_EQ(input_of(probe.refresh(first.cursor)), 2);
}

TEST(TerraformBackends, ConsulIsNotAskedWithoutEndWhereItsIndexIsMissingOrItsAnswerComesAtOnce) {
  StateServer server;
  const json backend = {{"type", "consul"}, {"address", server.address()}, {"path", "tf/p"}};
  for (const std::string index : {"missing", "zero", "hasty"}) {
    server.control({{"index", index}});
    auto probe = probe_of(backend);
    server.requests();
    const auto seen = probe.watch(
        {}, [](const Collected&) { return false; }, std::chrono::seconds(3), [] {});
    const auto asked = server.requests();
    EXPECT_GE(asked.size(), 1u) << index;
    EXPECT_LE(asked.size(), 4u) << index;
  }
}

class TerraformCloud : public testing::Test {
 protected:
  json backend() const {
    return {{"type", "cloud"},
            {"hostname", server_.url("")},
            {"organization", "acme"},
            {"workspaces", {{"name", "platform"}}},
            {"token", "token-of-token"}};
  }
  void publish(const std::string& version, int serial, int value) const {
    const std::string state =
        R"({"version":4,"terraform_version":"1.9.0","serial":)" + std::to_string(serial) +
        R"(,"lineage":"abc","outputs":{},"resources":[{"mode":"managed","type":"terraform_data","name":"a",)" +
        R"("provider":"p","instances":[{"attributes":{"input":{"value":)" + std::to_string(value) + "}}}]}]}";
    server_.control({{"token", "token-canary"},
                     {"state_version", version},
                     {"serial", serial},
                     {"state", state},
                     {"run", {{"id", "run-" + version}, {"status", "applied"}}}});
  }
  StateServer server_;  // not HCP Terraform, but a local server with its documented API
};

TEST_F(TerraformCloud, TheCurrentStateVersionIsReadWithItsRun) {
  auto probe = probe_of(backend());
  server_.control({{"token", "token-canary"}});
  expect_failure(probe.refresh(), DRIFTD_DENIED, "read state versions of acme/platform");
  publish("sv-1", 1, 1);
  const auto first = probe.refresh();
  ASSERT_EQ(first.status, DRIFTD_OK) << first.diagnostics[0].text;
  EXPECT_EQ(input_of(first), 1);
  const auto& metadata = first.find("instance", "terraform_data.a")->metadata;
  EXPECT_EQ(metadata.at("run_id"), "run-sv-1");
  EXPECT_EQ(metadata.at("run_status"), "applied");
  EXPECT_EQ(metadata.at("state_version"), "sv-1");
  server_.requests();
  EXPECT_TRUE(probe.refresh(first.cursor).unchanged);
  EXPECT_THAT(server_.requests(), ElementsAre("GET /api/v2/workspaces/ws-1/current-state-version 200"));
  publish("sv-2", 2, 5);
  EXPECT_EQ(input_of(probe.refresh(first.cursor)), 5);
  auto wrong = probe_of([&] {
    json out = backend();
    out["token"] = "token-of-wrong";
    return out;
  }());
  expect_failure(wrong.refresh(), DRIFTD_UNAUTHENTICATED, "the token was refused");
  expect_failures_conclude_nothing(probe, server_, first.cursor);
}

TEST_F(TerraformCloud, AFreshWorkerTellsTheLineageInEachHealth) {
  publish("sv-1", 1, 1);
  const std::string cursor = probe_of(backend()).refresh().cursor;
  auto probe = probe_of(backend());
  EXPECT_EQ(probe.health().health.system_identity, "abc");
  ASSERT_TRUE(probe.refresh(cursor).unchanged);
  EXPECT_TRUE(probe.discover().discovery_complete);
  EXPECT_EQ(probe.health().health.system_identity, "abc") << "after a discovery, too";
  auto other = probe_of(backend());
  ASSERT_TRUE(other.refresh(cursor).unchanged);
  EXPECT_TRUE(other.discover().discovery_complete);
  EXPECT_EQ(other.health().health.system_identity, "abc");
}

TEST_F(TerraformCloud, ItsWorkspaceIsAskedAtThePaceOfTheSettings) {
  publish("sv-1", 1, 1);
  auto probe = probe_of(backend(), {{"poll_interval_ms", 60000}});
  EXPECT_EQ(probe.refresh().next_ms, 60000);
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
