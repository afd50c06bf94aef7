// SPDX-License-Identifier: Apache-2.0
#include "terraform/mapping.hpp"

#define XXH_INLINE_ALL
#include <gmock/gmock.h>
#include <xxhash.h>

#include "states.hpp"
#include "terraform/cursor.hpp"
#include "terraform/secrets.hpp"

namespace driftd::terraform {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

TEST(TerraformMapping, NumbersKeepTheirTokens) {
  const auto seen = read(state_with(
      R"({"attributes":{"big":12345678901234567890123,"dec":1.10,"exp":1e3,"max":9007199254740993,"text":"1.10"}})"));
  EXPECT_EQ(seen.record("instance").body,
            R"({"big":12345678901234567890123,"dec":1.10,"exp":1e3,"max":9007199254740993,"text":"1.10"})");
}

TEST(TerraformMapping, AddressesAreTerraformsOwn) {
  const auto seen = read(state_with(R"({"index_key":"a b","attributes":{}},{"index_key":0,"attributes":{}},
      {"deposed":"00ff12ab","attributes":{}})"));
  EXPECT_THAT(seen.ids("instance"),
              ElementsAre(R"(module.bus.kafka_topic.orders["a b"])", "module.bus.kafka_topic.orders[0]",
                          "module.bus.kafka_topic.orders (deposed 00ff12ab)"));
}

TEST(TerraformMapping, MarkedAndWellKnownAttributesAreSensitive) {
  const auto seen = read(state_with(R"({"attributes":{"user":"u","master_password":"x","nested":[{"token":"t"}],
      "map":{"a.b":"v"}},"sensitive_attributes":[[{"type":"get_attr","value":"map"},
      {"type":"index","value":{"value":"a.b","type":"string"}}]]})"));
  EXPECT_THAT(seen.record("instance").sensitive,
              UnorderedElementsAre(R"(map["a.b"])", "master_password", "nested[0].token"));
}

TEST(TerraformMapping, AMarkOfTheWholeObjectMakesEveryAttributeSensitive) {
  const auto seen = read(state_with(R"({"attributes":{"a":"1","b":"2"},"sensitive_attributes":[[]]})"));
  EXPECT_THAT(seen.record("instance").sensitive, ElementsAre("a", "b"));
}

TEST(TerraformMapping, MarksThatCannotBeReadHideEverythingTheyMayMean) {
  for (const char* marks : {R"({"region":true})", R"("region")", "1"}) {
    const auto seen = read(
        state_with(R"({"attributes":{"region":"a","size":"b"},"sensitive_attributes":)" + std::string(marks) + "}"));
    EXPECT_THAT(seen.record("instance").sensitive, UnorderedElementsAre("region", "size")) << marks;
  }
  const auto none = read(state_with(R"({"attributes":{"region":"a"},"sensitive_attributes":null})"));
  EXPECT_THAT(none.record("instance").sensitive, IsEmpty());
}

TEST(TerraformMapping, AMarkThroughASetMakesTheWholeSetSensitive) {
  const auto seen = read(state_with(R"({"attributes":{"rules":[{"k":"v"}]},"sensitive_attributes":[[
      {"type":"get_attr","value":"rules"},{"type":"index","value":{"value":{"k":"v"},"type":["object",{"k":"string"}]}}]]})"));
  EXPECT_THAT(seen.record("instance").sensitive, ElementsAre("rules"));
}

TEST(TerraformMapping, ACopyOfAMarkedValueIsSensitiveToo) {
  // OpenTofu 1.10 marks the input of terraform_data, not the output that the provider makes of it
  const auto seen =
      read(state_with(R"({"attributes":{"input":{"value":"canary","type":"string"},"output":{"value":"canary",
      "type":"string"},"deep":[{"k":{"type":"string","value":"canary"}}],"plain":"x"},
      "sensitive_attributes":[[{"type":"get_attr","value":"input"}]]})"));
  EXPECT_THAT(seen.record("instance").sensitive, ElementsAre("deep[0].k", "input", "output"));
}

TEST(TerraformMapping, TypesThatHoldSecretsAreKnownWithoutAMark) {
  const auto seen =
      read(of_type("kubernetes_secret_v1", R"({"data":{"password":"x"},"metadata":[{"name":"n"}],"type":"Opaque"})"));
  EXPECT_THAT(seen.record("instance").sensitive, ElementsAre("data"));
  EXPECT_THAT(read(of_type("random_password", R"({"length":8,"result":"x"})")).record("instance").sensitive,
              ElementsAre("result"));
}

TEST(TerraformMapping, SettingsMayNameMoreSecrets) {
  Settings settings;
  settings.sensitive = {"pin*"};
  const auto seen = read(state_with(R"({"attributes":{"pin_code":"1","name":"n"}})"), settings);
  EXPECT_THAT(seen.record("instance").sensitive, ElementsAre("pin_code"));
}

TEST(TerraformMapping, SensitiveOutputIsSensitiveAndEveryRecordCarriesSerialAndLineage) {
  const auto seen = read(state_with("", R"({"db":{"value":"x","type":"string","sensitive":true}})"));
  EXPECT_THAT(seen.record("output").sensitive, ElementsAre("value"));
  for (const auto& r : seen.records) {
    EXPECT_EQ(r.metadata.at("serial"), "7");
    EXPECT_EQ(r.metadata.at("lineage"), "abc");
    EXPECT_EQ(r.origin, "terraform-state");
  }
}

TEST(TerraformMapping, AnInstanceLargerThanTheHostTakesKeepsItsShortAttributes) {
  const auto seen = read(state_with(R"({"attributes":{"name":"n","policy":")" + std::string(5 << 20, 'x') + R"("}})"));
  EXPECT_EQ(seen.record("instance").body, R"({"name":"n"})");
  ASSERT_EQ(seen.record("instance").unread.size(), 1u);
  EXPECT_EQ(seen.record("instance").unread[0].path, "policy");
  EXPECT_EQ(seen.record("instance").unread[0].code, DRIFTD_BUDGET);
}

TEST(TerraformMapping, StateSaysWhatItHoldsAndWhichChecksFail) {
  const auto seen =
      read(state_with(R"({"attributes":{}},{"deposed":"00ff12ab","attributes":{}})", "{}",
                      R"(,"check_results":[{"object_kind":"check","config_addr":"check.up","status":"fail",
      "objects":[{"object_addr":"check.up","status":"fail","failure_messages":["secret text"]}]},
      {"object_kind":"var","config_addr":"var.a","status":"pass"}])"));
  const auto status = nlohmann::json::parse(seen.record("state").status);
  EXPECT_EQ(status["instances"], 1);
  EXPECT_EQ(status["deposed"], 1);
  EXPECT_EQ(status["checks"], (nlohmann::json{{"fail", 1}, {"pass", 1}}));
  EXPECT_EQ(status["failing_checks"], nlohmann::json::array({"check.up"}));
  EXPECT_THAT(seen.record("state").status, testing::Not(HasSubstr("secret text")));
}

TEST(TerraformMapping, OfAnEncryptedStateOnlyLineageAndSerialAreKnown) {
  const auto seen = read(
      R"({"serial":3,"lineage":"abc","meta":{"key_provider.pbkdf2.k":"eyJ"},"encrypted_data":"AAAA","encryption_version":"v0"})");
  EXPECT_TRUE(seen.head.encrypted);
  ASSERT_EQ(seen.records.size(), 1u);
  EXPECT_EQ(seen.records[0].body, R"({"lineage":"abc"})");
  EXPECT_EQ(seen.records[0].version, "3");
  ASSERT_EQ(seen.records[0].unread.size(), 1u);
  EXPECT_EQ(seen.records[0].unread[0].code, DRIFTD_UNSUPPORTED);
}

/// The digest was made of other text before; compared with that one, every state would have been edited by hand.
TEST(TerraformCursor, ADigestOfAFormerKindIsUnknownSoThatAnUpgradeIsNotTampering) {
  Cursor cursor{"stamp", "", {}};
  cursor.head.lineage = "abc";
  cursor.head.serial = "7";
  cursor.head.digest = "0123456789abcdef";
  const std::string text = render(cursor, "f");
  const Head now = read(state_with(R"({"attributes":{}})")).head;
  EXPECT_EQ(history_of(parse_cursor(text, "f").head, now), "tampered");
  std::string former = text.substr(text.find(' ') + 1);
  const auto at = former.find("\"digest2\"");
  ASSERT_NE(at, std::string::npos);
  former.replace(at, 9, "\"digest\"");
  former = std::to_string(XXH3_64bits(former.data(), former.size())) + " " + former;
  const Cursor known = parse_cursor(former, "f");
  EXPECT_EQ(known.head.serial, "7");
  EXPECT_EQ(history_of(known.head, now), "");
  Head older = now;
  older.serial = "6";
  EXPECT_EQ(history_of(known.head, older), "rolled back");
}

TEST(TerraformCursor, OneThatWasDamagedOrMadeUnderOtherSettingsKnowsNothing) {
  Cursor cursor{"stamp", "tampered", {}};
  cursor.head.lineage = "abc";
  cursor.head.serial = "7";
  const std::string text = render(cursor, "f");
  EXPECT_EQ(parse_cursor(text, "f").stamp, "stamp");
  EXPECT_EQ(parse_cursor(text, "f").head.serial, "7");
  EXPECT_EQ(parse_cursor(text, "g").stamp, "");
  for (std::size_t i = 0; i < text.size(); ++i) {
    std::string damaged = text;
    damaged[i] = static_cast<char>(damaged[i] ^ 1);
    EXPECT_EQ(parse_cursor(damaged, "f").stamp, "") << i;
    EXPECT_EQ(parse_cursor(text.substr(0, i), "f").stamp, "") << i;
  }
}

TEST(TerraformMapping, SameSerialWithOtherResourcesIsTamperedALowerSerialIsRolledBack) {
  const auto head = [](const std::string& serial, const std::string& digest, const std::string& lineage = "abc") {
    Head out;
    out.lineage = lineage;
    out.serial = serial;
    out.digest = digest;
    return out;
  };
  EXPECT_EQ(history_of(head("7", "a"), head("7", "b")), "tampered");
  EXPECT_EQ(history_of(head("7", "a"), head("7", "a")), "");
  EXPECT_EQ(history_of(head("9", "a"), head("10", "b")), "");
  EXPECT_EQ(history_of(head("10", "a"), head("9", "b")), "rolled back");
  EXPECT_EQ(history_of(head("10", "a"), head("9", "b", "other")), "");
  EXPECT_EQ(history_of(Head{}, head("9", "b")), "");
  EXPECT_EQ(history_of(head("7", ""), head("7", "b")), "") << "encrypted before";
}

}  // namespace
}  // namespace driftd::terraform
