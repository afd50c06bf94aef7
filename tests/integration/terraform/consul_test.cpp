// SPDX-License-Identifier: Apache-2.0
// Consul as a state backend: plain, gzipped and chunked states, and how its index is waited for.
#include <gmock/gmock.h>

#include "backend_probe.hpp"
#include "support/patience.hpp"

namespace driftd::test {
namespace {

using nlohmann::json;
using testing::ElementsAre;

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

void put(const StateServer& server, int value) {
  const std::string url = server.url("/v1/kv/tf/p");
  ASSERT_EQ(run({"curl", "-sf", "-X", "PUT", "--data-binary", small_state(value), url}).code, 0);
}

TEST(TerraformBackends, ConsulsIndexOfZeroHidesNoChange) {
  StateServer server;
  server.control({{"index", "zero"}});
  put(server, 1);
  auto probe = probe_of({{"type", "consul"}, {"address", server.address()}, {"path", "tf/p"}});
  const auto first = probe.refresh();
  EXPECT_EQ(input_of(first), 1);
  put(server, 2);
  EXPECT_EQ(input_of(probe.refresh(first.cursor)), 2);
}

TEST(TerraformBackends, ConsulsIndexThatComesAgainAfterARestoreHidesNoChange) {
  StateServer server;
  server.control({{"restored", 41}});
  put(server, 1);
  auto probe = probe_of({{"type", "consul"}, {"address", server.address()}, {"path", "tf/p"}});
  const auto first = probe.refresh();
  EXPECT_EQ(input_of(first), 1);
  EXPECT_TRUE(probe.refresh(first.cursor).unchanged);
  server.control({{"restored", 41}});  // the snapshot is older than that write
  put(server, 2);
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

}  // namespace
}  // namespace driftd::test
