// SPDX-License-Identifier: Apache-2.0
// The store of a running agent is backed up, restored, lost and damaged. A file sink shows what consumers get.
#include <sqlite3.h>
#include <filesystem>
#include <fstream>

#include "world.hpp"

namespace driftd::test {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;

class StoreOfAnAgent : public ::testing::Test {
 protected:
  TempDir dir;
  std::string state = dir.write("infra/terraform.tfstate", tfstate(7, 3));
  std::string sink = dir.file("out/events.jsonl");
  Agent agent{dir, "defaults:\n  interval: 200ms\nbackends:\n" + terraform_backend(state) +
                       "sinks:\n  out: { type: file, path: " + sink +
                       " }\n  aside: { type: file, path: " + dir.file("out/aside.jsonl") +
                       " }\nroutes:\n  - { to: [out] }\n  - { match: { change: [config.updated] }, to: [aside] }\n"};

  void SetUp() override {
    fs::create_directory(dir.file("out"));
    agent.start();
    ASSERT_TRUE(eventually([&] { return agent.established({"platform"}); })) << agent.log();
  }
  Output driftd(std::vector<std::string> words) { return agent.cli(std::move(words)); }
  std::vector<nlohmann::json> sent() const {
    std::vector<nlohmann::json> out;
    std::ifstream in(sink);
    for (std::string line; std::getline(in, line);) {
      auto json = nlohmann::json::parse(line, nullptr, false);
      if (json.is_object()) out.push_back(std::move(json));
    }
    return out;
  }
  /// Returns the events that have this value of `subject` or `type`.
  std::vector<nlohmann::json> sent(const std::string& member, const std::string& value) const {
    std::vector<nlohmann::json> out;
    for (auto& event : sent()) {
      if (event.value(member, "") == value) out.push_back(std::move(event));
    }
    return out;
  }
  /// Returns the cursor of the next refresh as the store contains it. Empty if there is none.
  std::string sealed_cursor() const {
    sqlite3* db = nullptr;
    std::string out;
    const auto take = +[](void* to, int, char** values, char**) {
      *static_cast<std::string*>(to) += values[0];
      return 0;
    };
    EXPECT_EQ(sqlite3_open_v2((agent.data_dir() + "/store.db").c_str(), &db, SQLITE_OPEN_READONLY, nullptr), SQLITE_OK);
    sqlite3_busy_timeout(db, 5000);
    sqlite3_exec(db, "SELECT cursor FROM backend", take, &out, nullptr);
    sqlite3_close(db);
    return out;
  }
  static constexpr const char* kTopic = "platform/instance/kafka_topic.orders";
  static constexpr const char* kIncarnation = "io.driftd.agent.incarnation.v1";
};

/// Returns what consumers order events by: the incarnation of the store and the number in it (docs/sinks.md).
std::pair<std::uint64_t, std::uint64_t> order_of(const nlohmann::json& event) {
  return {std::stoull(event.value("driftincarnation", "0")), std::stoull(event.at("driftseq").get<std::string>())};
}

TEST_F(StoreOfAnAgent, RestoredBackupTellsConsumersThatItBeginsAnew) {
  const std::string backup = dir.file("backup.db");
  const Output made = driftd({"--config", agent.config(), "backup", backup});
  ASSERT_EQ(made.code, 0) << made.err;
  EXPECT_THAT(made.out, HasSubstr("verified: 1 backends"));
  for (const int partitions : {4, 5, 6}) {
    const auto before = sent("subject", kTopic).size();
    replace_file(state, tfstate(7, partitions));
    ASSERT_TRUE(eventually([&] { return sent("subject", kTopic).size() > before; })) << agent.log();
  }
  const auto last_before_restore = order_of(sent("subject", kTopic).back());
  const auto running = driftd({"--config", agent.config(), "restore", backup});
  EXPECT_EQ(running.code, 69);
  EXPECT_THAT(running.err, HasSubstr("in use by pid"));
  ASSERT_EQ(agent.stop(), 0);
  const Output restored = driftd({"--config", agent.config(), "restore", backup});
  ASSERT_EQ(restored.code, 0) << restored.err;
  EXPECT_THAT(restored.out, HasSubstr("the former store is"));
  const auto before = sent("subject", kTopic).size();
  agent.start();
  ASSERT_TRUE(eventually([&] {
    return sent("subject", kTopic).size() > before && !sent("type", kIncarnation).empty();
  })) << agent.log();
  EXPECT_GT(order_of(sent("subject", kTopic).back()), last_before_restore);
  EXPECT_EQ(sent("type", kIncarnation).front().at("data").at("details").at("reason"), "restored");
  const std::string aside = read_file(dir.file("out/aside.jsonl"));
  EXPECT_THAT(aside, HasSubstr("config.updated"));
  EXPECT_EQ(aside.find(kIncarnation), std::string::npos) << "the store's own events must follow the routes, too";
  EXPECT_EQ(agent.stop(), 0);
}

/// The cursor of the terraform provider contains a time stamp and a digest of the whole state; the store must not show
/// them.
TEST_F(StoreOfAnAgent, HoldsNothingOfACursorThatIsNotSealed) {
  const auto stored = [&] {
    std::string out;
    for (const auto& entry : fs::directory_iterator(agent.data_dir())) {
      if (entry.path().filename().string().starts_with("store.db")) out += read_file(entry.path().string());
    }
    return out;
  };
  ASSERT_TRUE(eventually([&] { return !sealed_cursor().empty(); })) << "the agent stored no cursor";
  for (const char* word : {"\"stamp\":", "\"history\":"}) {
    EXPECT_EQ(stored().find(word), std::string::npos) << word << " of the cursor can be read in the store";
  }
  ASSERT_EQ(agent.stop(), 0);
  EXPECT_EQ(stored().find("\"stamp\":"), std::string::npos);
  agent.start();
  ASSERT_TRUE(eventually([&] { return agent.established({"platform"}); })) << agent.log();
  EXPECT_EQ(agent.log().find("could not be opened"), std::string::npos) << agent.log();
  EXPECT_EQ(agent.stop(), 0);
}

TEST_F(StoreOfAnAgent, LostStoreIsNoNewBaseline) {
  ASSERT_EQ(agent.stop(), 0);
  for (const auto& lose : {+[](const std::string& file) { fs::remove(file); },
                           +[](const std::string& file) { std::ofstream(file, std::ios::trunc); }}) {
    lose(agent.data_dir() + "/store.db");
    const Output refused = run({Agent::binary(), "run", "--config", agent.config()});
    EXPECT_EQ(refused.code, 69);
    EXPECT_THAT(refused.err, HasSubstr("the store was lost"));
  }
}

TEST_F(StoreOfAnAgent, WhatACommandFindsInTheStoreFollowsTheRoutesToo) {
  replace_file(state, tfstate(8, 4));
  ASSERT_TRUE(eventually([&] {
    return read_file(dir.file("out/aside.jsonl")).find("config.updated") != std::string::npos;
  })) << agent.log();
  ASSERT_EQ(agent.stop(), 0);
  const std::string file = agent.data_dir() + "/store.db";
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open(file.c_str(), &db), SQLITE_OK);
  EXPECT_EQ(sqlite3_exec(db, "UPDATE resource SET version = 'of a broken disk'", nullptr, nullptr, nullptr), SQLITE_OK);
  sqlite3_close(db);
  const Output rotated = driftd({"--config", agent.config(), "key", "rotate"});
  ASSERT_EQ(rotated.code, 0) << rotated.err;
  agent.start();
  ASSERT_TRUE(eventually([&] { return !sent("type", "io.driftd.agent.corrupt.v1").empty(); })) << agent.log();
  ASSERT_TRUE(eventually([&] { return !sent("type", "io.driftd.agent.key_rotated.v1").empty(); })) << agent.log();
  EXPECT_EQ(agent.stop(), 0);
  EXPECT_EQ(read_file(dir.file("out/aside.jsonl")).find("io.driftd.agent."), std::string::npos);
}

TEST_F(StoreOfAnAgent, RemovedUnderTheRunningAgentEndsIt) {
  for (const char* part : {"", "-wal", "-shm"}) fs::remove(agent.data_dir() + "/store.db" + part);
  EXPECT_TRUE(eventually([&] { return !agent.running(); })) << agent.log();
  EXPECT_THAT(agent.log(), HasSubstr("store.db is not there any more"));
}

std::string two_topics(int orders, int other) {
  std::string resources;
  for (const auto& [name, partitions] : {std::pair("orders", orders), std::pair("other", other)}) {
    resources += std::string(resources.empty() ? "" : ",") + R"({"mode":"managed","type":"kafka_topic","name":")" +
                 name + R"(","provider":"p","instances":[{"attributes":{"partitions":)" + std::to_string(partitions) +
                 "}}]}";
  }
  return R"({"version":4,"terraform_version":"1.9.0","serial":8,"lineage":"abc","outputs":{},"resources":[)" +
         resources + "]}";
}

/// The row of a resource and the drift of another resource are damaged. When the agent reads the first, it finds and
/// mends both, and the drift is gone from the store. It must end then: its index in memory still knows the second
/// resource, so it would settle that resource as unchanged for ever. After the next start it reports again what still
/// differs.
TEST_F(StoreOfAnAgent, RowsMendedUnderTheRunningAgentEndItAndTheNextOneTellsWhatStillDiffers) {
  const std::string other = "platform/instance/kafka_topic.other";
  const auto drifts_of_other = [&] {
    std::vector<std::string> out;
    for (const auto& row : agent.rows({"drifts"})) {
      if (row.dump().find("kafka_topic.other") != std::string::npos) out.push_back(row.at("id"));
    }
    return out;
  };
  replace_file(state, two_topics(3, 3));  // another serial: Terraform applied it
  ASSERT_TRUE(eventually([&] { return !sent("subject", other).empty(); })) << agent.log();
  replace_file(state, two_topics(3, 4));
  ASSERT_TRUE(eventually([&] { return drifts_of_other().size() == 1; })) << agent.log();
  const auto ids_before = drifts_of_other();
  ASSERT_TRUE(eventually([&] { return sent("subject", other).size() == 2; })) << agent.log();
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open((agent.data_dir() + "/store.db").c_str(), &db), SQLITE_OK);
  sqlite3_busy_timeout(db, 5000);
  EXPECT_EQ(sqlite3_exec(db,
                         "UPDATE drift SET reason = 'of a broken disk' WHERE name LIKE '%other' AND open = 1; "
                         "UPDATE resource SET version = 'of a broken disk' WHERE name LIKE '%orders'",
                         nullptr, nullptr, nullptr),
            SQLITE_OK);
  sqlite3_close(db);
  replace_file(state, two_topics(5, 4));
  ASSERT_TRUE(eventually([&] { return !agent.running(); })) << agent.log();
  EXPECT_THAT(agent.log(), AllOf(HasSubstr("did not match their checksum and were mended"),
                                 HasSubstr("drift " + ids_before.front()), HasSubstr("starts again from the store")));
  agent.start();
  ASSERT_TRUE(eventually([&] { return drifts_of_other().size() == 1; })) << agent.log();
  EXPECT_NE(drifts_of_other(), ids_before);
  const std::string id_after = drifts_of_other().front();
  const auto reported = [&] { return read_file(sink).find(id_after) != std::string::npos; };
  ASSERT_TRUE(eventually(reported)) << "the drift is not reported again: " << read_file(sink);
  EXPECT_EQ(sent("type", "io.driftd.agent.corrupt.v1").size(), 2U);
  EXPECT_TRUE(agent.running());
  EXPECT_EQ(agent.stop(), 0);
}

TEST_F(StoreOfAnAgent, WhoIsRefusedAtTheSocketHasMadeNoStore) {
  const std::string config =
      dir.write("second.yaml", "agent: { data_dir: " + dir.file("second") + ", plugin_dirs: [" +
                                   Agent::build("providers") + "] }\nadmin: { socket: " + agent.socket() +
                                   ", listen: \"\" }\nbackends:\n" + terraform_backend(state));
  const Output refused = run({Agent::binary(), "run", "--config", config});
  EXPECT_EQ(refused.code, 69) << refused.out << refused.err;
  EXPECT_THAT(refused.err, HasSubstr("an agent answers on " + agent.socket()));
  EXPECT_FALSE(fs::exists(dir.file("second")));
  EXPECT_TRUE(agent.running());
}

TEST_F(StoreOfAnAgent, VerifyReadsAllOfItBesideTheAgentAndNamesWhatIsWrong) {
  const std::string file = agent.data_dir() + "/store.db";
  const Output whole = driftd({"verify", file});
  EXPECT_EQ(whole.code, 0) << whole.out << whole.err;
  EXPECT_THAT(whole.out, HasSubstr("whole: 1 backends"));
  ASSERT_EQ(agent.stop(), 0);
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open(file.c_str(), &db), SQLITE_OK);
  EXPECT_EQ(sqlite3_exec(db, "UPDATE event SET backend = 'of a broken disk' WHERE seq = 1", nullptr, nullptr, nullptr),
            SQLITE_OK);
  sqlite3_close(db);
  const Output damaged = driftd({"verify", file});
  EXPECT_EQ(damaged.code, 1) << damaged.out << damaged.err;
  EXPECT_THAT(damaged.out, AllOf(HasSubstr("damaged: "), HasSubstr("event row 1 does not match its checksum")));
  EXPECT_EQ(driftd({"verify", file + "-of-nobody"}).code, 69);
}

TEST_F(StoreOfAnAgent, StartSaysHowLongItTookAndWhatItTookOver) {
  EXPECT_THAT(agent.log(), HasSubstr("new store: the first complete refresh"));
  ASSERT_EQ(agent.stop(), 0);
  agent.start();
  EXPECT_TRUE(eventually([&] {
    return agent.log().find("the store was taken over: 1 backends,") != std::string::npos;
  })) << agent.log();
  EXPECT_TRUE(eventually([&] { return agent.log().find("ready after ") != std::string::npos; })) << agent.log();
  for (const char* step : {"configuration ", "store ", "plugins ", "sinks ", "backends ", "admin ", "first cycles "})
    EXPECT_THAT(agent.log(), HasSubstr(step));
}

}  // namespace
}  // namespace driftd::test
