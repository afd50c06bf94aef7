// SPDX-License-Identifier: Apache-2.0
// schema.json as the host reads it.
#include "core/value/schema.hpp"

#include <gtest/gtest.h>
#include <fstream>
#include <nlohmann/json.hpp>

#include "postgres/guc.hpp"
#include "postgres/queries.hpp"

namespace driftd::postgres {
namespace {

std::shared_ptr<const core::KindSchema> schema_of(std::string_view kind) {
  std::ifstream in(DRIFTD_SOURCE_DIR "/plugins/postgres/schema.json");
  const auto parsed = core::KindSchema::parse(nlohmann::json::parse(in).at("kinds").at(std::string(kind)).dump());
  EXPECT_TRUE(parsed.has_value()) << kind << ": " << (parsed ? "" : parsed.error().message);
  return parsed ? *parsed : nullptr;
}

std::string normal(const char* attribute, const std::string& json) {
  const auto value =
      core::normalise(schema_of("setting")->rule(core::Path::parse(attribute).value()), core::parse(json).value());
  EXPECT_TRUE(value.has_value()) << json;
  return value.value_or("unreadable");
}

TEST(Schema, TheHostReadsTheDocumentOfEveryKind) {
  for (const auto kind : kKinds) ASSERT_NE(schema_of(kind), nullptr) << kind;
}

TEST(Schema, TheShowFormOfASettingEqualsWhatTheServerCounts) {
  EXPECT_EQ(normal("bytes", typed({"16384", "8kB", "integer"}).json), normal("bytes", "\"128MB\""));
  EXPECT_EQ(normal("duration", typed({"300", "s", "integer"}).json), normal("duration", "\"5min\""));
  EXPECT_EQ(normal("bytes", typed({"-1", "kB", "integer"}).json), normal("bytes", "-1"));
  EXPECT_EQ(normal("duration", typed({"0.5", "ms", "real"}).json), normal("duration", "0.5"));
  EXPECT_EQ(normal("flag", "true"), normal("flag", "\"on\""));
  EXPECT_EQ(normal("number", typed({"0.10", "", "real"}).json), normal("number", "0.1"));
}

TEST(Schema, OneByteMoreIsAnotherValue) {
  EXPECT_NE(normal("bytes", "134217729"), normal("bytes", "\"128MB\""));
  EXPECT_NE(normal("duration", "300001"), normal("duration", "\"5min\""));
}

TEST(Schema, VerifiersAreSensitiveCredentialsAndTheServersIdentityIsAnEndpoint) {
  const auto role = schema_of("role");
  const auto verifier = core::Path::parse("verifier").value();
  EXPECT_TRUE(role->rule(verifier).sensitive);
  EXPECT_EQ(role->cls(verifier), core::ChangeClass::credential);
  EXPECT_EQ(schema_of("instance")->cls(core::Path::parse("system_identifier").value()), core::ChangeClass::endpoint);
}

}  // namespace
}  // namespace driftd::postgres
