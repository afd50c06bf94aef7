// SPDX-License-Identifier: Apache-2.0
// How configurations are put back: the request on the wire, the plan of attributes, the command that is shown, and the
// proof of a SCRAM login.
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "kafka/alter_plan.hpp"
#include "kafka/scram_proof.hpp"
#include "kafka/wire.hpp"

namespace driftd::kafka {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using namespace std::string_literals;

template <class Work>
driftd_status code_of(Work work) {
  try {
    work();
  } catch (const sdk::Failure& failure) {
    return failure.code;
  }
  return DRIFTD_OK;
}

const AlterRequest kAlter{ConfigResource::topic, "o", {{"a", "1"}, {"b", std::nullopt}}, true};

TEST(KafkaAlterWire, RequestIsFramedAsKafkaReadsIt) {
  EXPECT_EQ(alter_request(7, kAlter),
            "\0\0\0\x2a\0\x2c\0\0\0\0\0\7\0\6driftd"s  // length, key 44, version 0, correlation, client
            "\0\0\0\1\2\0\1o"                          // one resource: topic o
            "\0\0\0\2\0\1a\0\0\1"
            "1"                     // a: SET to 1
            "\0\1b\1\xff\xff\1"s);  // b: DELETE with null; validate_only
}

TEST(KafkaAlterWire, RealRequestDiffersOnlyInTheLastByte) {
  AlterRequest real = kAlter;
  real.validate_only = false;
  std::string expected = alter_request(7, kAlter);
  expected.back() = '\0';
  EXPECT_EQ(alter_request(7, real), expected);
}

std::string answer(const std::string& rest) { return "\0\0\0\7\0\0\0\0\0\0\0\1"s + rest; }

TEST(KafkaAlterWire, AnswerHasTheErrorOfTheResource) {
  const AlterAnswer fine = parse_alter(answer("\0\0\xff\xff\2\0\1o"s), 7, kAlter);
  EXPECT_EQ(fine.error, 0);
  EXPECT_THAT(fine.text, IsEmpty());
  const AlterAnswer refused = parse_alter(answer("\0\x28\0\3bad\2\0\1o"s), 7, kAlter);
  EXPECT_EQ(refused.error, 40);
  EXPECT_EQ(refused.text, "bad");
}

TEST(KafkaAlterWire, AnswerAboutSomethingElseOrCutIsCorrupt) {
  const std::string whole = answer("\0\0\xff\xff\2\0\1o"s);
  for (const std::string& other : {answer("\0\0\xff\xff\2\0\1p"s), answer("\0\0\xff\xff\4\0\1o"s),
                                   "\0\0\0\7\0\0\0\0\0\0\0\0"s, "\0\0\0\6"s + whole.substr(4)})
    EXPECT_EQ(code_of([&] { parse_alter(other, 7, kAlter); }), DRIFTD_CORRUPT);
  for (std::size_t size = 0; size < whole.size(); ++size)
    EXPECT_EQ(code_of([&] { parse_alter(whole.substr(0, size), 7, kAlter); }), DRIFTD_CORRUPT) << size;
}

AlterPlan plan(const std::string& kind, const std::string& id, const std::vector<sdk::Change>& changes) {
  return plan_alteration({kind, id}, changes, "k:9092");
}

TEST(KafkaAlterPlan, TopicIsSetAndUnsetInOneRequestWithItsUndo) {
  const auto made = plan("topic", "orders",
                         {{0, "config[\"retention.ms\"]", "\"1000\"", "\"60000\""},
                          {1, "config[\"cleanup.policy\"]", R"(["delete"])", R"(["compact","delete"])"},
                          {2, "config[\"segment.ms\"]", "\"5\"", ""}});
  ASSERT_THAT(made.impossible, IsEmpty());
  EXPECT_EQ(alter_command(made.request, "k:9092"),
            "kafka-configs.sh --bootstrap-server k:9092 --alter --entity-type topics --entity-name orders --add-config "
            "'retention.ms=60000,cleanup.policy=[compact,delete]' --delete-config segment.ms");
  EXPECT_EQ(alter_command(made.undo, "k:9092"),
            "kafka-configs.sh --bootstrap-server k:9092 --alter --entity-type topics --entity-name orders --add-config "
            "retention.ms=1000,cleanup.policy=delete,segment.ms=5");
  EXPECT_EQ(made.request.type, ConfigResource::topic);
}

TEST(KafkaAlterPlan, BrokerAndAllBrokersAreTheirOwnResources) {
  const auto one = plan("broker", "3", {{0, "dynamic[\"log.cleaner.threads\"]", "\"1\"", "\"2\""}});
  EXPECT_EQ(one.request.type, ConfigResource::broker);
  EXPECT_EQ(one.request.name, "3");
  EXPECT_THAT(alter_command(one.request, "k:9092"), HasSubstr("--entity-type brokers --entity-name 3 "));
  const auto all = plan("cluster", "cluster", {{0, "broker_defaults[\"log.cleaner.threads\"]", "", "\"2\""}});
  EXPECT_EQ(all.request.name, "");
  EXPECT_THAT(alter_command(all.request, "k:9092"), HasSubstr("--entity-type brokers --entity-default "));
  EXPECT_THAT(alter_command(all.undo, "k:9092"), HasSubstr("--delete-config log.cleaner.threads"));
}

TEST(KafkaAlterPlan, WholeMapIsItsMembersThatDiffer) {
  const auto made = plan("topic", "t", {{0, "config", R"({"a":"1","b":"2"})", R"({"b":"3","c":"4"})"}});
  EXPECT_THAT(alter_command(made.request, "k"), HasSubstr("--add-config b=3,c=4 --delete-config a"));
  EXPECT_THAT(alter_command(made.undo, "k"), HasSubstr("--add-config a=1,b=2 --delete-config c"));
}

TEST(KafkaAlterPlan, ValuesAreWrittenWithTheSeparatorOfTheirKey) {
  const nlohmann::json two{"User:a,b", "User:c"};
  EXPECT_EQ(value_text("super.users", two), "User:a,b;User:c");
  EXPECT_EQ(value_text("listener.name.x.ssl.enabled.protocols", nlohmann::json{"TLSv1.2", "TLSv1.3"}),
            "TLSv1.2,TLSv1.3");
  EXPECT_EQ(value_text("retention.ms", 60000), "60000") << "an expectation may be a number";
  EXPECT_EQ(value_text("retention.ms", nlohmann::json::object()), std::nullopt);
  EXPECT_EQ(value_text("cleanup.policy", nlohmann::json::array()), "");
}

TEST(KafkaAlterPlan, OneAttributeThatCannotBeSetMakesAllImpossible) {
  const sdk::Change fine{0, "config[\"retention.ms\"]", "\"1\"", "\"2\""};
  const auto fewer = plan("topic", "t", {fine, {1, "partitions", "6", "3"}});
  EXPECT_THAT(fewer.impossible, HasSubstr("topic/t: partitions cannot be set: Kafka never takes partitions away"));
  EXPECT_EQ(fewer.instead, "kafka-topics.sh --bootstrap-server k:9092 --alter --topic t --partitions 3");
  EXPECT_THAT(plan("topic", "t", {{0, "replication_factor", "1", "3"}}).instead,
              HasSubstr("kafka-reassign-partitions.sh"));
  EXPECT_THAT(plan("broker", "1", {{0, "static[\"log.dirs\"]", "[]", "[]"}}).impossible,
              HasSubstr("server.properties"));
  EXPECT_THAT(plan("acl", "x", {{0, "host", "\"*\"", "\"10.0.0.1\""}}).impossible, HasSubstr("never does"));
  EXPECT_THAT(plan("scram_user", "u/SCRAM-SHA-256", {{0, "iterations", "1", "2"}}).impossible, HasSubstr("credential"));
  EXPECT_THAT(plan("cluster", "cluster", {{0, "cluster_id", "\"a\"", "\"b\""}}).impossible, HasSubstr("a fact"));
  EXPECT_THAT(plan("group", "g", {{0, "protocol_type", "\"a\"", "\"b\""}}).impossible, HasSubstr("a fact"));
  EXPECT_THAT(plan("topic", "t", {{0, "config[\"a\"].b", "1", "2"}}).impossible, HasSubstr("no parts"));
  const std::string big = "\"" + std::string(32768, 'x') + "\"";
  EXPECT_THAT(plan("topic", "t", {{0, "config.a", "", big}}).impossible, HasSubstr("32767"));
}

TEST(KafkaAlterPlan, ShellSeesOneWord) {
  const auto made = plan("topic", "t", {{0, "config.a", "\"1\"", "\"it's $(x)\""}});
  EXPECT_THAT(alter_command(made.request, "k"), HasSubstr("--add-config 'a=it'\\''s $(x)'"));
}

// RFC 7677, section 3
constexpr const char* kProofNonce = "rOprNGfwEbeRWgbNEkqO";
constexpr const char* kClientFirst = "n,,n=user,r=rOprNGfwEbeRWgbNEkqO";
const std::string kServerFirst =
    "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096";

TEST(KafkaScramProof, IsTheExampleOfTheRfc) {
  const auto proof = scram_proof("SCRAM-SHA-256", "pencil", kClientFirst, kServerFirst, kProofNonce);
  EXPECT_EQ(
      proof.client_final,
      "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=");
  EXPECT_EQ(proof.server_final, "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=");
}

TEST(KafkaScramProof, HostileServerCannotKeepUsComputing) {
  const std::string many = kServerFirst.substr(0, kServerFirst.rfind('=') + 1) + "2000000000";
  EXPECT_EQ(code_of([&] { scram_proof("SCRAM-SHA-256", "pencil", kClientFirst, many, kProofNonce); }), DRIFTD_CORRUPT);
}

}  // namespace
}  // namespace driftd::kafka
