// SPDX-License-Identifier: Apache-2.0
#include "check/settings.hpp"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "check/sink/receiver.hpp"

namespace driftd::check {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

constexpr char kSchema[] = R"({"type": "object", "required": ["address"], "additionalProperties": false, "properties": {
  "address": {"type": "string"}, "port": {"type": "integer"}, "password": {"type": "string", "writeOnly": true},
  "users": {"type": "array", "items": {"type": "object", "properties": {
    "name": {"type": "string"}, "key": {"type": "string", "writeOnly": true}}}}}})";

TEST(CheckSettings, SensitiveLiteralsBecomeTokensWithTheBytesAsSecrets) {
  const auto settings = read_settings("address: a:1\npassword: hunter2\nport: 5\n", "s.yaml", kSchema, 7);
  ASSERT_TRUE(settings) << settings.error().message;
  const json got = json::parse(settings->json);
  EXPECT_EQ(got["address"], "a:1");
  EXPECT_EQ(got["port"], 5);
  EXPECT_THAT(settings->json, Not(HasSubstr("hunter2")));
  ASSERT_EQ(settings->secrets.size(), 1u);
  EXPECT_EQ(settings->secrets.at(got["password"]), "hunter2");
}

TEST(CheckSettings, SecretsInsideListsGetATokenEach) {
  const auto settings = read_settings(
      R"({"address": "a", "users": [{"name": "x", "key": "k1"}, {"name": "y", "key": "k2"}]})", "s.json", kSchema, 7);
  ASSERT_TRUE(settings) << settings.error().message;
  const json got = json::parse(settings->json);
  EXPECT_EQ(settings->secrets.at(got["users"][0]["key"]), "k1");
  EXPECT_EQ(settings->secrets.at(got["users"][1]["key"]), "k2");
  EXPECT_EQ(got["users"][1]["name"], "y");
}

TEST(CheckSettings, TokensFollowTheSeed) {
  const auto tokens = [](std::uint64_t seed) {
    return read_settings("{address: a, password: b}", "s.yaml", kSchema, seed)->json;
  };
  EXPECT_EQ(tokens(1), tokens(1));
  EXPECT_NE(tokens(1), tokens(2));
}

TEST(CheckSettings, AMistakeIsNamedWithFileAndSettingButNotItsValue) {
  const auto settings = read_settings("{address: a, passwort: hunter2}", "s.yaml", kSchema, 7);
  ASSERT_FALSE(settings);
  EXPECT_EQ(settings.error().message, "s.yaml: settings.passwort: unknown setting; did you mean `password`?");
}

TEST(CheckSettings, AReferenceIsRefusedSinceNobodyResolvesIt) {
  const auto settings = read_settings("{address: a, password: \"${env:PW}\"}", "s.yaml", kSchema, 7);
  ASSERT_FALSE(settings);
  EXPECT_THAT(settings.error().message,
              HasSubstr("s.yaml: settings.password: expected the value itself, found a reference"));
}

TEST(CheckSettings, AFileThatIsNoMapIsRefused) {
  const auto settings = read_settings("- address\n", "s.yaml", kSchema, 7);
  ASSERT_FALSE(settings);
  EXPECT_THAT(settings.error().message, HasSubstr("s.yaml: expected a map of settings"));
}

TEST(CheckSettings, BrokenYamlIsToldWithItsPlace) {
  const auto settings = read_settings("address: [a\n", "s.yaml", kSchema, 7);
  ASSERT_FALSE(settings);
  EXPECT_THAT(settings.error().message, HasSubstr("s.yaml:"));
}

TEST(CheckSettings, WithoutASchemaTheyStayAsTheyAre) {
  EXPECT_EQ(read_settings("{password: p}", "s.yaml", "", 7)->json, R"({"password":"p"})");
}

TEST(CheckSettings, NoneAreNeededWhereTheSchemaRequiresNone) {
  const auto settings = default_settings(R"({"type": "object", "properties": {"a": {}}})");
  EXPECT_EQ(settings.json, "{}");
  EXPECT_EQ(settings.missing, "");
}

TEST(CheckSettings, WhatIsRequiredIsTheReasonThatThereAreNone) {
  const auto settings = default_settings(kSchema);
  EXPECT_EQ(settings.json, "");
  EXPECT_EQ(settings.missing, "needs --settings FILE: `address` is required");
}

TEST(CheckSettings, PlaceholdersOfASinkStayAndAreValidatedAsPorts) {
  const auto settings =
      read_settings("address: 127.0.0.1:${tcp}\nport: ${tcp}\n", "s.yaml", kSchema, 7, PluginKind::sink);
  ASSERT_TRUE(settings) << settings.error().message;
  EXPECT_TRUE(names_address(settings->json, "tcp"));
  EXPECT_FALSE(names_address(settings->json, "udp"));
  const json got = json::parse(with_addresses(settings->json, {4711, 0, {}, {}}));
  EXPECT_EQ(got["address"], "127.0.0.1:4711");
  EXPECT_EQ(got["port"], 4711);
  EXPECT_FALSE(read_settings("address: a\nport: ${tcp}\n", "s.yaml", kSchema, 7));  // a provider has no receiver
}

TEST(CheckSettings, PathsOfUnixSocketsStandWhereTheirPlaceholdersDo) {
  constexpr const char* kPaths =
      R"({"type": "object", "properties": {"socket": {"type": "string"}, "url": {"type": "string"}}})";
  const auto settings =
      read_settings("socket: ${unixgram}\nurl: unix:${unix}\n", "s.yaml", kPaths, 7, PluginKind::sink);
  ASSERT_TRUE(settings) << settings.error().message;
  EXPECT_TRUE(names_unix_address(settings->json));
  EXPECT_FALSE(names_address(settings->json, "tcp"));
  const json got = json::parse(with_addresses(settings->json, {1, 2, "/run/stream", "/run/datagram"}));
  EXPECT_EQ(got["socket"], "/run/datagram");
  EXPECT_EQ(got["url"], "unix:/run/stream");
}

}  // namespace
}  // namespace driftd::check
