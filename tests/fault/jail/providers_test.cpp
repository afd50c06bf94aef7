// SPDX-License-Identifier: Apache-2.0
// The shipped providers and the examples work in a jail whose filter kills: every call that they make with a real
// server is allowed.
#include <gmock/gmock.h>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "contract/host/core_thread.hpp"
#include "support/postgres.hpp"
#include "support/process.hpp"
#include "support/redis.hpp"

namespace driftd::test {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

class InJail : public ::testing::Test {
 protected:
  InJail() : factory_(host::make_session_factory(host_options(core_))) {}
  void TearDown() override {
    for (const auto& session : sessions_) core_.run(session->stop());
  }
  core::Session& open(const std::string& file, const Json& settings, std::map<std::string, std::string> secrets = {}) {
    core::SessionSpec spec;
    spec.backend = "jailed";
    spec.provider = file;
    spec.settings_json = settings.dump();
    spec.secrets = std::move(secrets);
    sessions_.push_back(factory_->open(spec).value());
    return *sessions_.back();
  }
  static std::string shipped(const std::string& name) { return DRIFTD_BINARY_DIR "/providers/" + name + ".so"; }
  /// Expects that a full refresh and a health call succeed without a restart of the worker. Returns the number of
  /// records.
  std::size_t count_records(core::Session& session) {
    const auto pages = std::make_shared<Pages>();
    const auto outcome = core_.run(session.refresh({true, {}, {}, std::chrono::seconds(30)}, keep(pages)));
    EXPECT_TRUE(outcome) << outcome.error().message;
    const auto health = core_.run(session.health());
    EXPECT_TRUE(health && health->state == core::HealthReport::State::up)
        << (health ? health->reason : health.error().message);
    EXPECT_EQ(session.status().last_exit, "");
    EXPECT_EQ(session.status().restarts, 0u);
    return pages->records();
  }

  Core core_;
  std::shared_ptr<core::SessionFactory> factory_;
  std::vector<std::shared_ptr<core::Session>> sessions_;
  TempDir folder_;
};

TEST_F(InJail, RedisOverTcp) {
  const RedisServer server;
  EXPECT_GT(count_records(open(shipped("redis"), {{"address", "localhost:" + std::to_string(server.port())}})), 1u);
}

TEST_F(InJail, RedisOverAUnixSocket) {
  const std::string socket = folder_.file("redis.sock");
  const RedisServer server({"--unixsocket", socket});
  EXPECT_GT(count_records(open(shipped("redis"), {{"address", "unix:" + socket}})), 1u);
}

TEST_F(InJail, PostgresOverTcpAndOverItsSocket) {
  const PostgresServer server;
  Json settings = {
      {"endpoints", "localhost:" + std::to_string(server.port())}, {"user", server.user()}, {"password", "token-1"}};
  EXPECT_GT(count_records(open(shipped("postgres"), settings, {{"token-1", server.password()}})), 10u);
  settings.erase("endpoints");
  settings["socket"] = server.socket_file();
  EXPECT_GT(count_records(open(shipped("postgres"), settings, {{"token-1", server.password()}})), 10u);
  settings.erase("socket");
  settings["endpoints"] = Json::array({"unix:" + server.socket_folder() + ":" + std::to_string(server.port())});
  EXPECT_GT(count_records(open(shipped("postgres"), settings, {{"token-1", server.password()}})), 10u);
}

std::string state(int serial) {
  return R"({"version":4,"terraform_version":"1.9.0","serial":)" + std::to_string(serial) +
         R"(,"lineage":"abc","outputs":{},"resources":[]})";
}

TEST_F(InJail, TerraformReadsAndWatchesAFileThatIsReplacedByRename) {
  const std::string file = folder_.write("terraform.tfstate", state(1));
  auto& session = open(shipped("terraform"), {{"path", file}});
  EXPECT_GT(count_records(session), 0u);
  const auto seen = std::make_shared<Pages>();
  std::optional<Status> ended;
  core_.start(session.watch("", keep(seen)), ended);
  int serial = 1;
  core_.until([&] {
    fs::rename(folder_.write("fresh", state(++serial)), file);
    return !seen->all.empty() || ended;
  });
  EXPECT_FALSE(ended) << ended->error().message;
  EXPECT_GT(count_records(session), 0u) << "the new file is readable";
  core_.run(session.stop());
  core_.until([&] { return ended.has_value(); });
}

/// The worker may not read the folder, which contains the agent's config, so each new state file needs a worker with a
/// new jail. A call that comes before the agent noticed the new file is answered by the next worker and does not fail.
TEST_F(InJail, TerraformBesideTheAgentsConfigIsReadAlsoWhenItWasReplaced) {
  auto options = host_options(core_);
  options.own = {folder_.write("driftd.yaml", "text")};
  factory_ = host::make_session_factory(options);
  const std::string file = folder_.write("terraform.tfstate", state(1));
  auto& session = open(shipped("terraform"), {{"path", file}});
  EXPECT_GT(count_records(session), 0u);
  const int first = session.status().pid;
  for (int serial = 2; serial < 5; ++serial) {
    fs::rename(folder_.write("fresh", state(serial)), file);
    EXPECT_GT(count_records(session), 0u);
    fs::rename(folder_.write("fresh", state(serial)), file);
    const auto health = core_.run(session.health());
    EXPECT_TRUE(health && health->state == core::HealthReport::State::up)
        << (health ? health->reason : health.error().message);
  }
  std::optional<Status> ended;
  core_.start(session.watch("", keep(std::make_shared<Pages>())), ended);
  fs::rename(folder_.write("fresh", state(5)), file);
  EXPECT_GT(count_records(session), 0u);
  core_.until([&] { return ended.has_value(); });
  EXPECT_TRUE(*ended) << "a change of the worker is not a failure: " << ended->error().message;
  EXPECT_NE(session.status().pid, first);
}

/// Without a scan the agent does not know the schema of the settings. So the first worker only reports it, and the
/// second one may read the paths of the settings.
TEST_F(InJail, TheExampleReadsTheFolderOfItsSettings) {
  folder_.write("one", "1");
  for (const char* language : {"cpp", "c", "rust", "go"}) {
    const std::string file = DRIFTD_BINARY_DIR "/providers-examples/" + std::string(language) + "/files.so";
    EXPECT_EQ(count_records(open(file, {{"path", folder_.path().string()}, {"key", "token-1"}}, {{"token-1", "k"}})),
              1u)
        << language;
  }
}

}  // namespace
}  // namespace driftd::test
