// SPDX-License-Identifier: Apache-2.0
#include "ipc/settings_schema.hpp"

#include <gmock/gmock.h>

namespace driftd::ipc {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr char kSchema[] = R"({
  "type": "object", "required": ["address"], "additionalProperties": false,
  "properties": {
    "address": {"type": "string", "minLength": 1},
    "password": {"type": "string", "writeOnly": true},
    "db": {"type": "integer", "minimum": 0, "maximum": 15},
    "mode": {"enum": ["one", "two"]},
    "tls": {"type": "object", "additionalProperties": false, "properties": {
      "ca": {"type": "string", "format": "path"}, "key": {"type": "string", "writeOnly": true}}},
    "labels": {"type": "object", "additionalProperties": {"type": "string"}},
    "hosts": {"type": "array", "minItems": 1, "items": {"type": ["string", "null"]}},
    "port": {"oneOf": [{"type": "integer"}, {"type": "string", "enum": ["auto"]}]}}})";

std::vector<std::string> mistakes(const std::string& settings) {
  std::vector<std::string> out;
  const auto found = validate_settings(kSchema, settings).value();
  for (const auto& e : found) out.push_back(e.path + ": " + e.message);
  return out;
}

TEST(SettingsSchema, GoodSettingsHaveNoMistakes) {
  EXPECT_THAT(mistakes(R"({"address":"a","db":15,"mode":"two","tls":{"ca":"/x"},"labels":{"a":"b"},
                           "hosts":["x",null],"port":"auto"})"),
              IsEmpty());
}

TEST(SettingsSchema, ATypoNamesThePathAndTheNearestName) {
  EXPECT_THAT(mistakes(R"({"address":"a","tls":{"cq":"x"},"passwrod":"x"})"),
              ElementsAre("settings.passwrod: unknown setting; did you mean `password`?",
                          "settings.tls.cq: unknown setting; did you mean `ca`?"));
}

TEST(SettingsSchema, AllMistakesAreToldAtOnce) {
  EXPECT_THAT(
      mistakes(R"({"db":16,"mode":"three","labels":{"n":1},"hosts":[1]})"),
      ElementsAre("settings.address: is missing; this setting is required",
                  "settings.db: expected at most 15, found 16",
                  "settings.hosts[0]: expected string | null, found number",
                  "settings.labels.n: expected string, found number", "settings.mode: expected one of one | two"));
}

TEST(SettingsSchema, FractionsNegativesAndEmptyAreRefused) {
  EXPECT_THAT(mistakes(R"({"address":"","db":1.5,"hosts":[]})"),
              ElementsAre("settings.address: must not be empty", "settings.db: expected integer, found a fraction",
                          "settings.hosts: expected at least 1 element(s), found 0"));
  EXPECT_THAT(mistakes(R"({"address":"a","db":-1})"), ElementsAre("settings.db: expected at least 0, found -1"));
}

TEST(SettingsSchema, AnAlternativeThatFitsNoneTellsTheNearest) {
  EXPECT_THAT(mistakes(R"({"address":"a","port":true})"),
              ElementsAre("settings.port: expected integer, found boolean"));
}

TEST(SettingsSchema, ASecretIsNeverRepeatedInAMistake) {
  for (const auto& mistake : mistakes(R"({"address":"a","password":123456789})")) {
    EXPECT_EQ(mistake.find("123456789"), std::string::npos) << mistake;
  }
}

TEST(SettingsSchema, SettingsThatAreNoObjectAreCorrupt) {
  EXPECT_EQ(validate_settings(kSchema, "[]").error().code, Code::corrupt);
  EXPECT_EQ(validate_settings("nonsense", "{}").error().code, Code::corrupt);
  EXPECT_EQ(validate_settings(R"({"properties":{"a":{"minLength":"x"}}})", R"({"a":"b"})").error().code, Code::corrupt);
}

TEST(SettingsSchema, WriteOnlySettingsAreTheSensitiveOnes) {
  EXPECT_THAT(sensitive_settings(kSchema).value(), ElementsAre("settings.password", "settings.tls.key"));
}

TEST(SensitiveSettings, AWordInThePlaceOfTrueIsToldAndThrowsNothing) {
  const auto found = sensitive_settings(R"({"type":"object","properties":{"p":{"writeOnly":"yes"}}})");
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().message, "settings schema: settings.p: `writeOnly` must be true or false, found \"yes\"");
  EXPECT_TRUE(sensitive_settings(R"({"properties":7,"items":[1]})")) << "what is no schema has no secrets";
}

}  // namespace
}  // namespace driftd::ipc
