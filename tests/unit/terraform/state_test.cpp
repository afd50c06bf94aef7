// SPDX-License-Identifier: Apache-2.0
#include "terraform/state.hpp"

#include <gmock/gmock.h>
#include <zlib.h>

#include "states.hpp"
#include "terraform/document.hpp"

namespace driftd::terraform {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::UnorderedElementsAre;

std::string failure_of(const std::string& text, driftd_status code) {
  try {
    read(text);
  } catch (const sdk::Failure& failure) {
    EXPECT_EQ(failure.code, code) << failure.what();
    return failure.what();
  }
  ADD_FAILURE() << "expected a failure for " << text.substr(0, 60);
  return {};
}

TEST(TerraformState, BadFilesAreNamedForWhatTheyAre) {
  const std::string good = state_with(R"({"attributes":{}})");
  EXPECT_THAT(failure_of("", DRIFTD_CORRUPT), HasSubstr("empty"));
  EXPECT_THAT(failure_of(" \n", DRIFTD_CORRUPT), HasSubstr("line 2, column 1"));
  EXPECT_THAT(failure_of(good.substr(0, good.size() / 2), DRIFTD_CORRUPT), HasSubstr("line 1, column"));
  EXPECT_THAT(failure_of(good + "}", DRIFTD_CORRUPT), HasSubstr("not valid JSON"));
  EXPECT_THAT(failure_of("not json", DRIFTD_CORRUPT), HasSubstr("not valid JSON"));
  EXPECT_THAT(failure_of("[]", DRIFTD_CORRUPT), HasSubstr("object"));
  EXPECT_THAT(failure_of("7", DRIFTD_CORRUPT), HasSubstr("object"));
  EXPECT_THAT(failure_of(R"({"version":5,"resources":[]})", DRIFTD_UNSUPPORTED), HasSubstr("version 5"));
  EXPECT_THAT(failure_of(R"({"version":4,"serial":1,"resources":[]})", DRIFTD_CORRUPT), HasSubstr("lineage"));
  EXPECT_THAT(failure_of(R"({"version":4,"serial":1,"lineage":"x","resources":{}})", DRIFTD_CORRUPT),
              HasSubstr("'resources'"));
  EXPECT_THAT(failure_of(R"({"version":4,"serial":1,"lineage":"x","resources":[7]})", DRIFTD_CORRUPT),
              HasSubstr("resources[0]"));
  EXPECT_THAT(failure_of(R"({"resources":[]})", DRIFTD_CORRUPT), HasSubstr("version"));
}

TEST(TerraformState, ATextThatIsCutOffInASecretQuotesNothingOfIt) {
  EXPECT_THAT(failure_of(R"({"version":4,"resources":[{"mode":"managed","x":"canary-of-the-te)", DRIFTD_CORRUPT),
              testing::AllOf(HasSubstr("line 1, column"), Not(HasSubstr("canary"))));
  EXPECT_THAT(failure_of(R"({"version":4,"x":canary})", DRIFTD_CORRUPT), Not(HasSubstr("canar")));
}

/// One attribute that nests too deep costs only itself: the other attributes, instances and outputs are read.
TEST(TerraformState, WhatNestsTooDeepCostsItsOwnAttributeOnly) {
  for (const std::size_t depth : {130u, 300u, 100'000u}) {
    const std::string lists = std::string(depth, '[') + std::string(depth, ']');
    const std::string text =
        state_with(R"({"index_key":0,"attributes":{"bomb":)" + lists + R"(,"name":"a","ratio":1.50}},)" +
                       R"({"index_key":1,"attributes":{"name":"b"}})",
                   R"({"deep":{"value":)" + lists + R"(,"type":"x"},"flat":{"value":1}})");
    const Seen seen = read(text);
    ASSERT_EQ(seen.ids("instance").size(), 2u) << depth;
    const auto& bombed = seen.record("instance");
    EXPECT_EQ(bombed.body, R"({"name":"a","ratio":1.50})");
    ASSERT_EQ(bombed.unread.size(), 1u);
    EXPECT_EQ(bombed.unread[0].path, "bomb");
    EXPECT_EQ(bombed.unread[0].code, DRIFTD_CORRUPT);
    EXPECT_EQ(seen.record("output").unread.at(0).path, "value");
    EXPECT_EQ(seen.ids("output").size(), 2u);
  }
}

/// As a tree, {},{},… takes thirty times the size of its text. The tree of one resource has a limit, even if its
/// instances have to wait.
TEST(TerraformState, WhatHasTooManyValuesIsNeverATree) {
  const auto list = [](std::size_t count) {
    std::string out = "[{}";
    for (std::size_t i = 1; i < count; ++i) out += ",{}";
    return out + "]";
  };
  const std::string many = list(1'000'001), head = R"({"version":4,"serial":1,"lineage":"x","resources":[{)";
  EXPECT_THAT(failure_of(state_with(R"({"attributes":{"bomb":)" + many + "}}"), DRIFTD_BUDGET),
              HasSubstr("1000000 values"));
  EXPECT_THAT(
      failure_of(head + R"("instances":)" + many + R"(,"mode":"managed","type":"x_y","name":"n"}]})", DRIFTD_BUDGET),
      HasSubstr("values"));
  EXPECT_THAT(failure_of(R"({"version":3,"serial":1,"lineage":"x","modules":)" + list(2'000'001) + "}", DRIFTD_BUDGET),
              HasSubstr("2000000 values"));
  const Seen seen = read(state_with(R"({"attributes":{"long":)" + list(80'000) + R"(,"name":"b"}})"));
  EXPECT_TRUE(seen.record("instance").unread.empty());
}

/// An attribute may hold texts that begin with the internal marks; they are read like any other.
TEST(TerraformState, ATextThatLooksLikeAMarkIsATextAndStaysWhatItIs) {
  for (const std::string mark : {"\xEF\xB7\x90", "\xEF\xB7\x91", "\xEF\xB7\x92"}) {
    const std::string attributes = R"({")" + mark + R"(k":")" + mark + R"(12","n":1.5,"q":"a\")" + mark +
                                   R"(b","s":"a\")" + mark + R"(","t":")" + mark + R"("})";
    const Seen seen = read(of_type("x_y", attributes));
    EXPECT_EQ(nlohmann::json::parse(seen.record("instance").body), nlohmann::json::parse(attributes));
    EXPECT_TRUE(seen.record("instance").unread.empty());
  }
}

TEST(TerraformState, AStateWithoutResourcesIsWholeAndEmpty) {
  const auto seen = read(R"({"version":4,"serial":1,"lineage":"x"})");
  EXPECT_EQ(seen.records.size(), 1u);
}

TEST(TerraformState, UnknownModeDuplicateInstanceAndOddKeyAreCorruptWithThePlace) {
  std::string odd = state_with(R"({"attributes":{}})");
  odd.replace(odd.find("managed"), 7, "ephemer");
  EXPECT_THAT(failure_of(odd, DRIFTD_CORRUPT),
              testing::AllOf(HasSubstr("kafka_topic.orders"), HasSubstr("unknown mode 'ephemer'")));
  EXPECT_THAT(
      failure_of(state_with(R"({"index_key":1,"attributes":{}},{"index_key":1,"attributes":{}})"), DRIFTD_CORRUPT),
      HasSubstr("module.bus.kafka_topic.orders[1]: stands twice"));
  EXPECT_THAT(
      failure_of(state_with(R"({"index_key":1.5,"attributes":{}},{"index_key":true,"attributes":{}})"), DRIFTD_CORRUPT),
      HasSubstr("index_key"));
  EXPECT_THAT(failure_of(state_with(R"({"attributes":[]})"), DRIFTD_CORRUPT),
              HasSubstr("module.bus.kafka_topic.orders"));
}

TEST(TerraformState, SortedMembersAreReadAsWell) {
  // as `jq -S` writes: instances before what they are instances of, serial and version behind everything
  const auto seen =
      read(R"({"lineage":"abc","outputs":{},"resources":[{"instances":[{"attributes":{"a":1},"index_key":0}],
    "mode":"managed","module":"module.m","name":"n","provider":"p","type":"t"}],"serial":9,"terraform_version":"1.9.0","version":4})");
  EXPECT_THAT(seen.ids("instance"), ElementsAre("module.m.t.n[0]"));
  EXPECT_EQ(seen.record("instance").metadata.at("serial"), "9");
}

TEST(TerraformState, DataSourcesAreCountedAndPassedOver) {
  std::string text = state_with(R"({"attributes":{"a":1}})");
  text.replace(text.find("managed"), 7, "data");
  const auto seen = read(text);
  EXPECT_TRUE(seen.ids("instance").empty());
  EXPECT_EQ(seen.head.data, 1u);
}

TEST(TerraformState, FlatAttributesOfAnUpgradedProviderAreRead) {
  const auto seen =
      read(state_with(R"({"attributes":null,"attributes_flat":{"tags.%":"1","tags.Name":"n","rule.0.password":"x"}})"));
  EXPECT_EQ(nlohmann::json::parse(seen.record("instance").body)["tags.Name"], "n");
  EXPECT_THAT(seen.record("instance").sensitive, ElementsAre(R"(["rule.0.password"])"));
}

TEST(TerraformState, VersionThreeIsReadWithModulesCountDeposedAndTaint) {
  // the form of Terraform 0.11 (internal/states/statefile/version3.go)
  const auto seen = read(R"({"version":3,"terraform_version":"0.11.14","serial":12,"lineage":"old","modules":[
    {"path":["root"],"outputs":{"addr":{"sensitive":true,"type":"string","value":"db:1"}},"resources":{
      "aws_instance.web.0":{"type":"aws_instance","depends_on":[],"primary":{"id":"i-1","attributes":{"id":"i-1","tags.%":"1"},
        "meta":{},"tainted":true},"deposed":[{"id":"i-0","attributes":{"id":"i-0"},"meta":{},"tainted":false}],"provider":"provider.aws"},
      "data.aws_ami.base":{"type":"aws_ami","primary":{"id":"ami","attributes":{}},"deposed":[],"provider":"provider.aws"}}},
    {"path":["root","net","inner"],"outputs":{},"resources":{"aws_vpc.main":{"type":"aws_vpc","primary":{"id":"v","attributes":{"id":"v"}},
      "deposed":[],"provider":"provider.aws"}}}]})");
  EXPECT_THAT(seen.ids("instance"), UnorderedElementsAre("aws_instance.web[0]", "aws_instance.web[0] (deposed 0)",
                                                         "module.net.module.inner.aws_vpc.main"));
  EXPECT_EQ(seen.record("instance").body, R"({"id":"i-1","tags.%":"1"})");
  EXPECT_EQ(seen.record("instance").status, R"({"status":"tainted"})");
  EXPECT_EQ(seen.head.lineage, "old");
  EXPECT_EQ(seen.head.data, 1u);
  EXPECT_THAT(seen.record("output").sensitive, ElementsAre("value"));
}

TEST(TerraformState, VersionOneAndTwoHavePlainOutputsAndMayLackALineage) {
  for (const std::string version : {"1", "2"}) {
    const auto seen =
        read(R"({"version":)" + version + R"(,"serial":4,"modules":[{"path":["root"],"outputs":{"ip":"10.0.0.1"},
      "resources":{"aws_eip.ip":{"type":"aws_eip","primary":{"id":"e","attributes":{"public_ip":"10.0.0.1"}},
      "tainted":[{"id":"t","attributes":{}}]}}}]})");
    EXPECT_THAT(seen.ids("instance"), ElementsAre("aws_eip.ip", "aws_eip.ip (deposed 0)"));
    EXPECT_EQ(nlohmann::json::parse(seen.record("output").body)["value"], "10.0.0.1");
    EXPECT_EQ(nlohmann::json::parse(seen.record("instance").body),
              (nlohmann::json{{"id", "e"}, {"public_ip", "10.0.0.1"}}));
  }
  EXPECT_THAT(failure_of(R"({"version":3,"serial":1,"lineage":"x"})", DRIFTD_CORRUPT), HasSubstr("modules"));
  EXPECT_THAT(failure_of(R"({"version":3,"serial":1,"lineage":"x","modules":["canary"]})", DRIFTD_CORRUPT),
              Not(HasSubstr("canary")));
}

TEST(TerraformState, EqualResourcesHaveOneDigestWhateverStandsAroundThem) {
  const std::string one = state_with(R"({"attributes":{"a":1}})");
  std::string newer = one, other = one;
  newer.replace(newer.find("1.9.0"), 5, "1.9.9");
  other.replace(other.find("\"a\":1"), 5, "\"a\":2");
  EXPECT_EQ(read(one).head.digest, read(newer).head.digest);
  EXPECT_NE(read(one).head.digest, read(other).head.digest);
}

TEST(TerraformState, PeekKnowsTheHeadOfAStateThatIsCutOff) {
  const Head head = peek(state_with(R"({"attributes":{}})").substr(0, 90));
  EXPECT_EQ(head.lineage, "abc");
  EXPECT_EQ(head.serial, "7");
  EXPECT_EQ(peek("garbage").lineage, "");
}

TEST(TerraformSpool, KeepsWhatWasWrittenInAFractionOfItsSize) {
  std::string text;
  for (int i = 0; i < 40000; ++i) text += R"({"attributes":{"id":")" + std::to_string(i) + R"(","name":"resource"}},)";
  Spool spool;
  for (std::size_t at = 0; at < text.size(); at += 1234) spool.write(std::string_view(text).substr(at, 1234));
  spool.finish();
  EXPECT_EQ(spool.size(), text.size());
  EXPECT_LT(spool.stored(), text.size() / 8);
  EXPECT_EQ(spool.text(), text);
  EXPECT_EQ(spool.text(), text) << "may be read again";
}

std::string gzip_of(const std::string& text) {
  z_stream z{};
  deflateInit2(&z, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&z, text.size()), '\0');
  z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  z.avail_in = static_cast<uInt>(text.size());
  z.next_out = reinterpret_cast<Bytef*>(out.data());
  z.avail_out = static_cast<uInt>(out.size());
  deflate(&z, Z_FINISH);
  out.resize(out.size() - z.avail_out);
  deflateEnd(&z);
  return out;
}

std::string gunzipped(const std::string& bytes, std::size_t piece) {
  Spool spool;
  Gunzip gunzip(spool);
  for (std::size_t at = 0; at < bytes.size(); at += piece) gunzip.write(std::string_view(bytes).substr(at, piece));
  gunzip.finish();
  spool.finish();
  return spool.text();
}

TEST(TerraformSpool, GzipIsReadInPiecesOfAnySizeAndADamagedOneIsCorrupt) {
  const std::string text(5 << 20, 'x');  // a few bytes of it become a window of text and more
  const std::string packed = gzip_of(text);
  EXPECT_EQ(gunzipped(packed, 7), text);
  EXPECT_EQ(gunzipped(packed, packed.size()), text);
  std::string damaged = packed;
  damaged[damaged.size() - 6] ^= 1;  // of the checksum
  for (const std::string& bad : {packed.substr(0, packed.size() / 2), packed.substr(0, packed.size() - 1), damaged,
                                 std::string("no gzip"), std::string()}) {
    try {
      gunzipped(bad, 100);
      ADD_FAILURE() << bad.size();
    } catch (const sdk::Failure& failure) {
      EXPECT_EQ(failure.code, DRIFTD_CORRUPT);
    }
  }
}

}  // namespace
}  // namespace driftd::terraform
