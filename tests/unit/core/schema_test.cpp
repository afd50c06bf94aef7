// SPDX-License-Identifier: Apache-2.0
#include "core/value/schema.hpp"

#include <gtest/gtest.h>

namespace driftd::core {
namespace {

std::string document(const std::string& attributes, const std::string& more = "") {
  return R"({"schema":"driftd-schema/1","kind":"role")" + more + R"(,"attributes":{)" + attributes + "}}";
}
std::string schema_error(const std::string& json) {
  const auto schema = KindSchema::parse(json);
  if (schema) return "parsed";
  EXPECT_EQ(schema.error().code, Code::invalid);
  return schema.error().message;
}
Path path(std::string_view text) { return Path::parse(text).value(); }

TEST(Schema, MembersOfTheDocumentAreRead) {
  const auto schema =
      KindSchema::parse(
          document("", R"(,"revision":3,"class":"endpoint","title":"t","identity":"sysid","source":true)"))
          .value();
  EXPECT_EQ(schema->kind(), "role");
  EXPECT_EQ(schema->revision(), 3u);
  EXPECT_EQ(schema->cls(path("x")), ChangeClass::endpoint);
  EXPECT_EQ(schema->identity(), "sysid");
  EXPECT_TRUE(schema->source());
}

TEST(Schema, AnUnknownTypeIsAnsweredWithEveryType) {
  const std::string error = schema_error(document(R"("a":{"type":"strnig"})"));
  for (const char* type : {" any,", " string,", " timestamp,", " enum,"}) {
    EXPECT_NE(error.find(type), std::string::npos) << type << ": " << error;
  }
}

TEST(Schema, EveryMemberOfARuleIsRead) {
  const auto schema =
      KindSchema::parse(
          document(R"("a":{"type":"bool","unit":"u","collection":"map","keys":["name"],"basis":"v","class":"credential",
    "default":0,"empty":[null,""],"tokens":{"true":["ja"],"false":["nein"]},"masked":["***"],"fold":"ascii","trim":"eol",
    "volatile":true,"computed":true,"sensitive":true,"write_only":true,"since":2})"))
          .value();
  const auto& rule = schema->rule(path("a"));
  EXPECT_EQ(rule.type, ValueType::boolean);
  EXPECT_EQ(rule.unit, "u");
  EXPECT_EQ(rule.collection, Collection::map_by_keys);
  EXPECT_EQ(rule.keys, std::vector<std::string>{"name"});
  EXPECT_EQ(rule.basis, "v");
  EXPECT_EQ(rule.cls, ChangeClass::credential);
  EXPECT_EQ(rule.default_value, Value(Value::Number{"0"}));
  EXPECT_EQ(rule.empty_equivalents.size(), 2u);
  EXPECT_EQ(rule.true_tokens, std::vector<std::string>{"ja"});
  EXPECT_EQ(rule.false_tokens, std::vector<std::string>{"nein"});
  EXPECT_EQ(rule.masked.size(), 1u);
  EXPECT_TRUE(rule.fold && rule.trim_eol && rule.is_volatile && rule.computed && rule.sensitive && rule.write_only);
  EXPECT_FALSE(rule.trim_space);
  EXPECT_EQ(rule.since, 2u);
}

TEST(Schema, ADefaultHasNoMembersWhichCouldHaveDefaults) {
  const auto with = [](const std::string& value) {
    return KindSchema::parse(document(R"("**":{"default":)" + value + "}"));
  };
  for (const char* fine : {"1", "null", R"("x")", "{}", "[]", "[1,[2]]", "[{}]"}) EXPECT_TRUE(with(fine)) << fine;
  for (const char* refused : {R"({"a":1})", R"([{"a":1}])", R"([[{"a":{}}]])"}) {
    const auto made = with(refused);
    ASSERT_FALSE(made) << refused;
    EXPECT_EQ(made.error().message,
              "schema of role, attributes.\"**\".default: expected a scalar, {} or a list without objects, found an "
              "object with members; give each member a default of its own, as in \"a.b\": {\"default\": 1}");
  }
}

TEST(Schema, TheMostSpecificRuleWinsWhateverTheOrder) {
  const auto schema =
      KindSchema::parse(
          document(
              R"("**":{"type":"string"},"config.*":{"type":"int"},"config.max*":{"type":"bytes"},"config.maxmemory":{"type":"bool"})"))
          .value();
  EXPECT_EQ(schema->rule(path("config.maxmemory")).type, ValueType::boolean);
  EXPECT_EQ(schema->rule(path("config.maxclients")).type, ValueType::bytes);
  EXPECT_EQ(schema->rule(path("config.port")).type, ValueType::integer);
  EXPECT_EQ(schema->rule(path("a.b.c")).type, ValueType::string);
}

TEST(Schema, TheClassIsInheritedFromTheNearestAncestor) {
  const auto schema =
      KindSchema::parse(
          document(R"("auth":{"class":"credential"},"auth.user":{"class":"config"},"auth.x":{"type":"int"})"))
          .value();
  EXPECT_EQ(schema->cls(path("auth.password")), ChangeClass::credential);
  EXPECT_EQ(schema->cls(path("auth.x")), ChangeClass::credential);
  EXPECT_EQ(schema->cls(path("auth.user")), ChangeClass::config);
  EXPECT_EQ(schema->cls(path("other")), ChangeClass::config);
}

TEST(Schema, AnUnknownKindHasARuleForEverything) {
  const auto schema = KindSchema::unknown("thing");
  EXPECT_EQ(schema->kind(), "thing");
  EXPECT_EQ(schema->rule(path("a.b")).type, ValueType::any);
  EXPECT_EQ(schema->find_rule(path("a.b")), nullptr);
}

TEST(Schema, MistakesAreNamedWithTheirPlace) {
  EXPECT_EQ(schema_error("[]"), "schema: expected an object");
  EXPECT_EQ(schema_error("{\"kind\":\"a\"}"), "schema: expected \"schema\": \"driftd-schema/1\"");
  EXPECT_EQ(schema_error(R"({"schema":"driftd-schema/1","kind":"a"})"), "schema of a, attributes: is missing");
  EXPECT_EQ(schema_error(document(R"("a":{"typ":"int"})")).substr(0, 52),
            "schema of role, attributes.\"a\".typ: unknown member; ");
  EXPECT_EQ(schema_error(document(R"("a":{"since":0})")),
            "schema of role, attributes.\"a\".since: expected a whole number from 1, found 0");
  EXPECT_EQ(schema_error(document(R"("a":{"collection":"map"})")),
            "schema of role, attributes.\"a\": a map needs \"keys\"");
  EXPECT_EQ(schema_error(document(R"("a":{"sensitive":"yes"})")),
            "schema of role, attributes.\"a\".sensitive: expected true or false, found \"yes\"");
}

TEST(Schema, EveryMalformedMemberIsRefused) {
  for (const auto* rule :
       {R"({"type":"integer"})", R"({"type":1})", R"({"collection":"bag"})", R"({"keys":"name"})",
        R"({"class":"secret"})", R"({"empty":""})", R"({"masked":"*"})", R"({"tokens":["a"]})",
        R"({"tokens":{"maybe":[]}})", R"({"fold":"unicode"})", R"({"trim":"all"})", R"({"basis":["v"]})",
        R"({"since":1.5})", R"({"keys":[1]})", R"([])", R"({"unit":5})", R"({"volatile":1})"}) {
    EXPECT_NE(schema_error(document(std::string("\"a\":") + rule)), "parsed") << rule;
  }
  EXPECT_NE(schema_error(document(R"("a..b":{})")), "parsed");
  EXPECT_NE(schema_error(document("", R"(,"revision":"1")")), "parsed");
  EXPECT_NE(schema_error(document("", R"(,"version":1)")), "parsed");
  EXPECT_NE(schema_error("{"), "parsed");
}

TEST(Schema, ARuleIsSaidInWords) {
  const auto schema =
      KindSchema::parse(
          document(R"("retention":{"type":"duration","unit":"postgres:ms"},"l":{"collection":"set","fold":"ascii"})"))
          .value();
  EXPECT_EQ(render(schema->rule(path("retention"))), "duration(postgres:ms) of \"retention\"");
  EXPECT_EQ(render(schema->rule(path("l"))), "any set folded of \"l\"");
  EXPECT_EQ(render(schema->rule(path("z"))), "any by default");
}

}  // namespace
}  // namespace driftd::core
