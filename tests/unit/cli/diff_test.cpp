// SPDX-License-Identifier: Apache-2.0
// `driftd diff`: judges as the agent does, and shows what the agent would show.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/exit_codes.hpp"
#include "command_result.hpp"
#include "support/process.hpp"

namespace driftd::cli {
namespace {

using test::TempDir;
using testing::HasSubstr;
using testing::Not;

TEST(Diff, TellsDriftEqualUnknownAndBadInputApart) {
  const TempDir folder;
  const auto a = folder.write("a.json", R"({"x":1,"y":{"z":"s"}})");
  const auto b = folder.write("b.json", R"({"x":2,"y":{"z":"s"},"new":true})");
  const auto part = folder.write("part.json", R"({"y":{"z":"s"}})");
  EXPECT_EQ(driftd({"diff", a, a}).code, kOk);
  const CommandResult outcome = driftd({"diff", a, b});
  EXPECT_EQ(outcome.code, kFinding);
  EXPECT_THAT(outcome.out, HasSubstr("new"));
  EXPECT_EQ(driftd({"diff", part, b}).code, kFinding);
  EXPECT_EQ(driftd({"diff", "--partial", part, b}).code, kOk);
  EXPECT_EQ(driftd({"diff", a, "/nonexistent"}).code, kUsage);
  EXPECT_EQ(driftd({"diff", a, folder.write("l.json", "[1]")}).code, kUsage);
}

TEST(Diff, ShowsNoValueThatTheSchemaCallsSensitive) {
  const TempDir folder;
  const auto schema = folder.write("s.json", R"({"schema":"driftd-schema/1","kind":"k","revision":1,"class":"config",
      "attributes":{"password":{"type":"string","sensitive":true},"keys":{"type":"any","write_only":true},"m":{"type":"bytes"}}})");
  const auto a = folder.write("a.json", R"({"password":"canary-1","keys":{"x":"canary-2"},"m":1})");
  const auto b = folder.write("b.json", R"({"password":"canary-3","keys":{"x":"canary-4"},"m":2})");
  const auto none = folder.write("none.json", R"({"m":1})");
  for (const auto& words : std::vector<std::vector<std::string>>{
           {a, b}, {a, none}, {none, b}, {"--partial", a, b}, {"--partial", a, none}}) {
    for (const char* form : {"table", "json"}) {
      std::vector<std::string> line{"-o", form, "diff", "--schema", schema, "--explain"};
      line.insert(line.end(), words.begin(), words.end());
      const CommandResult outcome = driftd(line);
      EXPECT_THAT(outcome.out + outcome.err, Not(HasSubstr("canary"))) << testing::PrintToString(line);
      EXPECT_THAT(outcome.out, HasSubstr("password")) << testing::PrintToString(line);
    }
  }
  EXPECT_EQ(driftd({"diff", "--schema", schema, a, a}).code, kOk) << "one secret is equal to itself";
  EXPECT_EQ(driftd({"diff", "--schema", schema, "--partial", a, none}).code, kFinding)
      << "a secret that is wanted and not there";
}

TEST(Diff, ExplainsAValueThatIsNotOfItsTypeWithoutAnyPartOfIt) {
  const TempDir folder;
  const auto schema = folder.write("s.json", R"({"schema":"driftd-schema/1","dialect":2,"kind":"k","attributes":{
      "y":{"type":"yaml"},"x":{"type":"xml"},"d":{"type":"duration"}}})");
  const auto before = folder.write("a.json", R"({"y":"a: 1","x":"<a/>","d":"1s"})");
  const auto after =
      folder.write("b.json", R"({"y":"canary-1: 1\ncanary-1: 2","x":"<a canary-2='1' canary-2='2'/>","d":"canary-3"})");
  const CommandResult outcome = driftd({"diff", "--explain", "--schema", schema, before, after});
  EXPECT_EQ(outcome.code, kFinding);
  EXPECT_THAT(outcome.out, HasSubstr("the new value is not of its type (expected yaml)"));
  EXPECT_THAT(outcome.out, HasSubstr("the new value is not of its type (expected a duration)"));
  EXPECT_THAT(outcome.out + outcome.err, Not(HasSubstr("canary")));
}

TEST(Diff, ExplainShowsNoDefaultOfASensitiveAttribute) {
  const TempDir folder;
  const auto schema = folder.write("s.json", R"({"schema":"driftd-schema/1","dialect":2,"kind":"k","attributes":{
      "pw":{"type":"string","sensitive":true,"default":"canary-4711"},"n":{"type":"int","default":17},
      "by":{"sensitive":true,"default_by":{"of":"n","values":{"1":"canary-4712","":"canary-4713"}}},
      "box":{"default":{"p":"canary-4714"}},"box.p":{"sensitive":true}}})");
  const auto before = folder.write("a.json", R"({"pw":"x","n":1,"by":"y","box":{"p":"z"}})"),
             after = folder.write("b.json", "{}");
  for (const auto& [one, other] : {std::pair(before, after), std::pair(after, before)}) {
    const CommandResult outcome = driftd({"diff", "--explain", "--show", "**", "--schema", schema, one, other});
    EXPECT_EQ(outcome.code, kFinding);
    EXPECT_THAT(outcome.out, HasSubstr("17"));
    EXPECT_THAT(outcome.out + outcome.err, Not(HasSubstr("canary")));
  }
}

TEST(Diff, PartialTakesANameWithDotsOnceInWhateverSpelling) {
  const TempDir folder;
  const auto live = folder.write("live.json", R"({"a.b":1,"a":{"b":2}})");
  EXPECT_EQ(driftd({"diff", "--partial", folder.write("name.json", R"({"a.b":1})"), live}).code, kOk);
  EXPECT_EQ(driftd({"diff", "--partial", folder.write("other.json", R"({"a.b":2})"), live}).code, kFinding);
  const auto twice = folder.write("twice.json", R"({"a.b":1,"[\"a.b\"]":2})");
  const CommandResult refused = driftd({"diff", "--partial", twice, live});
  EXPECT_EQ(refused.code, kUsage);
  EXPECT_THAT(refused.err, HasSubstr("given twice"));
}

TEST(Diff, ShowsNoSensitivePartOfAnObjectThatIsReadAsAListOfOne) {
  const TempDir folder;
  const auto schema = folder.write("s.json", R"({"schema":"driftd-schema/1","dialect":2,"kind":"k","attributes":{
      "a":{"single":true,"collection":"list"},"a[*].code":{"sensitive":true},
      "m":{"single":true,"collection":"map","keys":["n"]},"m[*].code":{"sensitive":true}}})");
  const auto before = folder.write("a.json", R"({"a":{"code":7731901},"m":{"n":1,"code":7731901}})");
  const auto after = folder.write("b.json", R"({"a":{"code":8845512},"m":{"n":1,"code":8845512}})");
  const auto listed = folder.write("l.json", R"({"a":[{"code":7731901}],"m":[{"n":1,"code":7731901}]})");
  for (const char* form : {"table", "json"}) {
    for (const bool partial : {false, true}) {
      std::vector<std::string> line{"-o", form, "diff", "--explain", "--schema", schema};
      if (partial) line.push_back("--partial");
      line.insert(line.end(), {before, after});
      const CommandResult outcome = driftd(line);
      EXPECT_EQ(outcome.code, kFinding) << outcome.out << outcome.err;
      for (const char* secret : {"7731901", "8845512"})
        EXPECT_THAT(outcome.out + outcome.err, Not(HasSubstr(secret))) << form << partial;
    }
  }
  EXPECT_EQ(driftd({"diff", "--schema", schema, before, listed}).code, kOk) << "one object and a list of it";
}

TEST(Diff, PartialJudgesAsTheAgentJudgesAnExpectation) {
  const TempDir folder;
  const auto schema = folder.write("s.json", R"({"schema":"driftd-schema/1","kind":"k","revision":1,"class":"config",
      "attributes":{"password":{"type":"string","sensitive":true},"list":{"collection":"map","keys":["name"]}}})");
  const auto live =
      folder.write("live.json", R"({"password":"x","list":[{"name":"a","v":1},{"name":"b","v":2}],"t":5})");
  const auto partial = [&](const std::string& expected) {
    return driftd({"diff", "--schema", schema, "--partial", folder.write("e.json", expected), live}).code;
  };
  EXPECT_EQ(partial(R"({"t":"5"})"), kOk) << "a source's text of an attribute without a type";
  EXPECT_EQ(partial(R"({"gone":null})"), kOk) << "null: it must not be there";
  EXPECT_EQ(partial(R"({"t":null})"), kFinding);
  EXPECT_EQ(partial(R"({"list":[{"name":"b","v":2},{"name":"a","v":1}]})"), kOk);
  EXPECT_EQ(partial(R"({"list":[{"name":"a","v":1}]})"), kFinding) << "an expected list is the whole list";
  EXPECT_EQ(partial(R"({"password":"x"})"), kOk)
      << "the agent compares a secret that is expected in clear by its digest";
  EXPECT_EQ(partial(R"({"password":"y"})"), kFinding);
}

TEST(Diff, ReadsValuesByTheSchema) {
  const TempDir folder;
  const auto schema = folder.write("s.json", R"({"schema":"driftd-schema/1","kind":"k","revision":1,"class":"config",
      "attributes":{"m":{"type":"bytes","unit":"redis"}}})");
  const auto a = folder.write("a.json", R"({"m":"1gb"})");
  const auto b = folder.write("b.json", R"({"m":"1073741824"})");
  EXPECT_EQ(driftd({"diff", a, b}).code, kFinding);
  EXPECT_EQ(driftd({"diff", "--schema", schema, a, b}).code, kOk);
  EXPECT_THAT(driftd({"diff", "--schema", schema, "--explain", a, b}).out, HasSubstr("equal"));
}

/// Returns a body of which no value counts as harmless, with the marker in each.
std::string planted(const std::string& marker) {
  return R"({"id":"i","url":"postgres://u:)" + marker + R"(@h/x","note":"password=)" + marker + R"(","token":")" +
         marker + R"(","motd":")" + marker + R"(","env":{"DB_PASS":")" + marker + R"("},"args":["-p)" + marker +
         R"("],"lst":[{"n":"a","v":")" + marker + R"("}],"doc":"{\"k\":\")" + marker + R"(\"}","size":)" +
         (marker == "canary-one" ? "1" : "2") + R"(,"t":")" + marker + R"("})";
}

TEST(DiffShows, NothingThatTheAgentWithholdsInAnyForm) {
  const TempDir folder;
  const auto schema = folder.write(
      "s.json", R"({"schema":"driftd-schema/1","kind":"instance","revision":1,"class":"config","attributes":{
      "lst":{"collection":"map","keys":["n"]},"doc":{"type":"json"},"t":{"type":"duration","unit":"ms"},"motd":{"type":"string"}}})");
  const auto a = folder.write("a.json", planted("canary-one")), b = folder.write("b.json", planted("canary-two"));
  const auto none = folder.write("none.json", R"({"id":"i"})");
  int lines = 0;
  for (const auto& files : std::vector<std::vector<std::string>>{{a, b}, {a, none}, {none, b}, {a, a}}) {
    for (const bool partial : {false, true}) {
      for (const bool with_schema : {false, true}) {
        for (const bool explain : {false, true}) {
          for (const char* form : {"table", "json"}) {
            std::vector<std::string> line{"-o", form, "diff"};
            if (partial) line.push_back("--partial");
            if (with_schema) line.insert(line.end(), {"--schema", schema});
            if (explain) line.push_back("--explain");
            line.insert(line.end(), files.begin(), files.end());
            const CommandResult outcome = driftd(line);
            EXPECT_THAT(outcome.out + outcome.err, Not(HasSubstr("canary"))) << testing::PrintToString(line);
            const bool equal = files[0] == files[1] || (partial && files[0] == none);
            EXPECT_EQ(outcome.code, equal ? kOk : kFinding) << testing::PrintToString(line);
            ++lines;
          }
        }
      }
    }
  }
  EXPECT_EQ(lines, 64);
  const CommandResult outcome = driftd({"diff", "--schema", schema, a, b});
  EXPECT_THAT(outcome.out, HasSubstr("[REDACTED]"));
  EXPECT_THAT(outcome.out, HasSubstr("size  config\n  ~ 1 → 2\n")) << "what is harmless is shown";
  EXPECT_THAT(outcome.out, testing::ContainsRegex("url +credential"))
      << "a URL with a password is a credential, as the agent says";
}

TEST(DiffShows, WhatTheOptionsAllow) {
  const TempDir folder;
  const auto a = folder.write("a.json", planted("canary-one")), b = folder.write("b.json", planted("canary-two"));
  const CommandResult shown = driftd({"diff", "--show", "motd", "--show", "env.**", a, b});
  EXPECT_THAT(shown.out, HasSubstr("motd  config\n  ~ \"canary-one\" → \"canary-two\"\n"));
  EXPECT_THAT(shown.out, HasSubstr("env.DB_PASS"));
  EXPECT_THAT(shown.out, Not(HasSubstr("password=")));
  EXPECT_THAT(driftd({"diff", "--show", "**", a, b}).out, Not(HasSubstr("u:canary")))
      << "a URL's password is shown by no rule";
  EXPECT_THAT(driftd({"diff", "--hide", "size", a, b}).out, HasSubstr("size  config\n  ~ [REDACTED] → [REDACTED]\n"));
  EXPECT_EQ(driftd({"diff", "--show", "a[", a, b}).code, kUsage);
}

TEST(DiffShows, NoValueOfAFileThatItCannotRead) {
  const TempDir folder;
  const auto fine = folder.write("a.json", R"({"x":1})");
  for (const char* text : {R"({"password":"canary")", R"({"password":"canary"} x)", R"(["canary"])",
                           R"({"password":canary})", R"({"$hmac":"canary"})"}) {
    const CommandResult outcome = driftd({"diff", fine, folder.write("b.json", text)});
    EXPECT_EQ(outcome.code, kUsage) << text;
    EXPECT_THAT(outcome.out + outcome.err, Not(HasSubstr("canary"))) << text;
  }
}

}  // namespace
}  // namespace driftd::cli
