// SPDX-License-Identifier: Apache-2.0
// `driftd once` in a pipeline: its records, and which differences make it exit with 1.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "world.hpp"

namespace driftd::test {
namespace {

using testing::AllOf;
using testing::AnyOf;
using testing::HasSubstr;

class Record : public testing::Test {
 protected:
  Record() : state_(dir_.file("terraform.tfstate")), agent_(dir_, config()), record_(dir_.file("base.json")) {}
  std::string config() const {
    return "backends:\n" + terraform_backend(state_) + "sinks:\n  desk: { type: notifications }\n";
  }
  Output once(const char* flag, const char* output = "table") const {
    return run({Agent::binary(), "--config", agent_.config(), "-o", output, "once", flag, record_});
  }

  TempDir dir_;
  std::string state_;
  const Agent agent_;
  std::string record_;
};

TEST_F(Record, EveryDifferenceDecidesThePipelineWhateverAPolicyMakesOfIt) {
  replace_file(state_, tfstate(7, 3, "old-canary"));
  ASSERT_EQ(once("--record").code, 0);
  ASSERT_EQ(once("--baseline").code, 0);
  // The serial is the same; the policy accepts changes of class credential.
  replace_file(state_, tfstate(7, 3, "new-canary"));
  const Output secret = once("--baseline");
  EXPECT_EQ(secret.code, 1) << secret.out << secret.err;
  EXPECT_THAT(secret.out,
              AllOf(HasSubstr("sasl_password"), HasSubstr("auto-applied"), testing::Not(HasSubstr("canary"))));
  // Another serial is an apply, so the policy accepts the change of class config.
  replace_file(state_, tfstate(8, 9, "old-canary"));
  const Output applied = once("--baseline");
  EXPECT_EQ(applied.code, 1) << applied.out << applied.err;
  EXPECT_THAT(applied.out, AllOf(HasSubstr("partitions"), HasSubstr("auto-applied")));
}

TEST_F(Record, TenThousandResourcesAreWrittenReadBackAndCompared) {
  std::vector<std::string> topics;
  for (int i = 0; i < 10'000; ++i) topics.push_back("t" + std::to_string(i));
  replace_file(state_, tfstate_of(topics));
  const Output recorded = once("--record");
  ASSERT_EQ(recorded.code, 0) << recorded.out << recorded.err;
  const Output equal = once("--baseline");
  EXPECT_EQ(equal.code, 0) << equal.out.substr(0, 2'000) << equal.err;
  topics.back() = "another";
  replace_file(state_, tfstate_of(topics));
  const Output drifted = once("--baseline");
  EXPECT_EQ(drifted.code, 1);
  EXPECT_THAT(drifted.out, AllOf(HasSubstr("kafka_topic.t9999"), HasSubstr("kafka_topic.another")));
}

/// An agent holds a mass deletion and asks. In a pipeline nobody could answer, so each deletion is listed by its name.
TEST_F(Record, AMassDeletionIsListedOneByOne) {
  constexpr int kAll = 3'000, kLeft = 1;
  std::vector<std::string> topics;
  for (int i = 0; i < kAll; ++i) topics.push_back("t" + std::to_string(i));
  replace_file(state_, tfstate_of(topics));
  ASSERT_EQ(once("--record").code, 0);
  topics.resize(kLeft);
  replace_file(state_, tfstate_of(topics));
  const Output table = once("--baseline"), json = once("--baseline", "json");
  EXPECT_EQ(table.code, 1) << table.err;
  EXPECT_EQ(json.code, 1) << json.err;
  EXPECT_THAT(table.out, testing::Not(AnyOf(HasSubstr("scope/instance"), HasSubstr("gone at once"))));
  std::set<std::string> deleted;
  const auto answer = nlohmann::json::parse(json.out);
  for (const auto& drift : answer.at("drifts")) {
    EXPECT_EQ(drift.at("operation"), "deleted") << drift;
    deleted.insert(drift.at("resource").get<std::string>());
  }
  EXPECT_EQ(deleted.size(), static_cast<std::size_t>(kAll - kLeft));
  EXPECT_EQ(deleted.count("instance/kafka_topic.t2999"), 1u);
  EXPECT_THAT(table.out, HasSubstr("instance/kafka_topic.t1234\n"));
  std::filesystem::remove(state_);
  EXPECT_EQ(once("--baseline").code, 3) << "a missing state does not mean that its resources are deleted";
}

TEST_F(Record, WhatAnIgnoreRuleCoversIsNoDifference) {
  replace_file(state_, tfstate(7, 3));
  ASSERT_EQ(once("--record").code, 0);
  const std::string text = read_file(agent_.config());
  std::string ignoring = text;
  ignoring.insert(ignoring.find("sinks:"), "    ignore: [partitions]\n");
  std::ofstream(agent_.config(), std::ios::trunc) << ignoring;
  replace_file(state_, tfstate(7, 4));
  EXPECT_EQ(once("--baseline").code, 0);
  std::ofstream(agent_.config(), std::ios::trunc) << text;
  EXPECT_EQ(once("--baseline").code, 1);
}

TEST_F(Record, NothingButARecordIsWrittenOver) {
  replace_file(state_, tfstate(7, 3, "canary"));
  ASSERT_EQ(once("--record").code, 0);
  EXPECT_EQ(once("--record").code, 0) << "a record may be replaced by a newer one";
  const std::string data = agent_.data_dir();
  std::filesystem::create_directories(data);
  const std::string precious = dir_.write("driftd.key", "a key that nobody has twice");
  for (const auto& file : {agent_.config(), precious, dir_.path().string(), data + "/fresh", data + "/store.db"}) {
    const std::string before = std::filesystem::is_regular_file(file) ? read_file(file) : "";
    record_ = file;
    const Output refused = once("--record");
    EXPECT_EQ(refused.code, 2) << file << refused.out << refused.err;
    EXPECT_THAT(refused.err, HasSubstr("name a")) << file;
    EXPECT_EQ(std::filesystem::is_regular_file(file) ? read_file(file) : "", before) << file;
  }
}

TEST_F(Record, ARecordThatWasCutIsRefusedByItsPlace) {
  replace_file(state_, tfstate_of({"a", "b", "c"}));
  ASSERT_EQ(once("--record").code, 0);
  const std::string whole = read_file(record_);
  const auto lines_before = [&](std::size_t cut) {
    return std::count(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(cut), '\n');
  };
  const auto refusal_of = [&](std::size_t cut) {
    std::ofstream(record_, std::ios::trunc) << whole.substr(0, cut);
    const Output refused = once("--baseline");
    EXPECT_EQ(refused.code, 69) << cut << refused.out;
    return refused.err;
  };
  const std::size_t last_line = whole.rfind('\n', whole.size() - 2) + 1;
  for (const std::size_t cut : {std::size_t{0}, last_line}) {  // no line is broken, but the last one is missing
    EXPECT_THAT(refusal_of(cut),
                HasSubstr(record_ + ": ends after line " + std::to_string(lines_before(cut)) + " without"));
  }
  const std::size_t cut = whole.find("kafka_topic.b") + 4;  // inside a text
  EXPECT_THAT(refusal_of(cut), HasSubstr(record_ + ":" + std::to_string(lines_before(cut) + 1) + ":" +
                                         std::to_string(cut - whole.rfind('\n', cut)) + ": "));
  std::string without = whole;
  without.erase(without.find("{\"resource\""),
                without.find('\n', without.find("{\"resource\"")) - without.find("{\"resource\"") + 1);
  std::ofstream(record_, std::ios::trunc) << without;
  const Output shorter = once("--baseline");
  EXPECT_EQ(shorter.code, 69) << "a line is missing, and its resource would look as if it were new";
  EXPECT_THAT(shorter.err,
              HasSubstr(record_ + ": ends after line " + std::to_string(lines_before(whole.size()) - 1) + " without"));
}

TEST_F(Record, ARecordOfTheFirstFormatIsStillRead) {
  replace_file(state_, tfstate(7, 3));
  ASSERT_EQ(once("--record").code, 0);
  std::istringstream lines(read_file(record_));
  std::string head, backend, entry;
  std::getline(lines, head);
  std::getline(lines, backend);
  std::string resources;
  while (std::getline(lines, entry) && entry.starts_with("{\"resource\":")) {
    resources += (resources.empty() ? "" : ",") + entry.substr(12, entry.size() - 13);
  }
  head.replace(head.find("driftd-record/2"), 15, "driftd-record/1");
  backend = backend.substr(11, backend.size() - 12);  // {"backend":{…}}
  backend.insert(backend.size() - 1, ",\"resources\":[" + resources + "]");
  head.insert(head.size() - 1, ",\"backends\":[" + backend + "]");
  std::ofstream(record_, std::ios::trunc) << head << "\n";
  EXPECT_EQ(once("--baseline").code, 0);
  replace_file(state_, tfstate(7, 4));
  EXPECT_EQ(once("--baseline").code, 1);
}

}  // namespace
}  // namespace driftd::test
