// SPDX-License-Identifier: Apache-2.0
// `driftd diff`: judges as the agent does, and shows what the agent would show.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <set>

#include "cli/exit_codes.hpp"
#include "command_result.hpp"
#include "config/config.hpp"
#include "core/judge/judge.hpp"
#include "core/redact.hpp"
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

TEST(Diff, NamesWhatAPartialComparisonDoesNotLookAt) {
  const TempDir folder;
  const auto schema = folder.write("s.json", R"({"schema":"driftd-schema/1","kind":"k","dialect":2,"attributes":{
      "block":{"single":true},"block[*].a":{"type":"int"}}})");
  const auto where = folder.write("w.json", R"({"o.a":1,"list":[{"n":1}],"block":{"a":1},"p":{"q":{"r":1}}})");
  const auto live = folder.write("l.json", R"({"o":{"a":1,"b":2},"list":[{"n":1}],"block":[{"a":1}],"extra":[1],
      "p":{"q":{"r":1,"s":2},"t":3}})");
  const CommandResult outcome = driftd({"diff", "--schema", schema, "--partial", where, live});
  EXPECT_EQ(outcome.code, kOk) << outcome.out;
  EXPECT_EQ(outcome.out, "equal\nnot compared extra, o.b, p.q.s, p.t\n");
  EXPECT_THAT(driftd({"-o", "json", "diff", "--schema", schema, "--partial", where, live}).out,
              HasSubstr(R"("not_compared":["extra","o.b","p.q.s","p.t"])"));
  EXPECT_THAT(driftd({"-o", "json", "diff", live, live}).out, Not(HasSubstr("not_compared")));
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

constexpr const char* kLive = R"({"id":"i","deep":{"x":1,"y":2},"lst":[{"n":1,"v":2}],"none":null})";

struct Expected {
  const char* where;
  int code;
  const char* says;  ///< `path old → new` of each difference
};

/// Returns `path old → new` of each difference that the command line prints.
std::string differences(const core::Value& outcome) {
  std::string out;
  for (const auto& change : *outcome.find("changes")->array()) {
    const auto text = [&](const char* name) {
      return change.find(name) ? *change.find(name)->string() : std::string("(absent)");
    };
    out += (out.empty() ? "" : ", ") + text("path") + " " + text("old") + " → " + text("new");
  }
  return out;
}

/// The same for an agent that has `where` in its configuration.
struct Agent {
  std::string outcome;
  bool unknown = false;
};
Agent judge_expectation(const std::string& where, const std::string& body,
                        const std::shared_ptr<const core::KindSchema>& schema) {
  std::string flow;
  for (std::size_t i = 0; i < where.size(); ++i)
    flow += std::string(1, where[i]) + (where.substr(i, 2) == "\":" ? "" : where[i] == ':' ? " " : "");
  const auto config =
      config::parse("backends: [ { name: a, provider: p, expect: [ { where: " + flow + " } ] } ]\n", "driftd.yaml");
  if (!config) return {"refused"};
  core::JudgeContext context;
  context.schema = schema;
  context.rules = config->backends.at(0).rules;
  core::Present seen;
  seen.observation.id = {schema->kind(), "i"};
  seen.observation.body = body;
  core::StoredResource row;
  row.id = seen.observation.id;
  const core::Judgement out = core::judge(context, row, seen);
  std::set<std::string> all;
  for (const auto& drift : out.next.open) {
    for (const auto& change : drift.changes) {
      const auto side = [](const auto& value) {
        return value ? core::presentable_json(*value) : std::string("(absent)");
      };
      all.insert(change.path + " " + side(change.old_value) + " → " + side(change.new_value));
    }
  }
  Agent agent{{}, !out.unknown.empty()};
  for (const auto& one : all) agent.outcome += (agent.outcome.empty() ? "" : ", ") + one;
  return agent;
}

class Partial : public testing::Test {
 protected:
  /// Judges with both and compares the results. Returns the exit code of the command line.
  int compare_both(const std::string& where, const std::string& body, std::string* says = nullptr) {
    const CommandResult outcome = driftd({"-o", "json", "diff", "--show", "**", "--schema", schema_file_, "--partial",
                                          folder_.write("w.json", where), folder_.write("b.json", body)});
    const Agent agent = judge_expectation(where, body, schema_);
    if (outcome.code == kUsage) {
      EXPECT_EQ(agent.outcome, "refused") << where << "\n" << outcome.err;
      return outcome.code;
    }
    const std::string mine = differences(core::parse(outcome.out).value());
    EXPECT_EQ(mine, agent.outcome) << where << " against " << body;
    EXPECT_EQ(outcome.code, !agent.outcome.empty() ? kFinding
                            : agent.unknown        ? kIncomplete
                                                   : kOk)
        << where << " against " << body;
    if (says) *says = mine;
    return outcome.code;
  }

  const TempDir folder_;
  static constexpr const char* kSchema =
      R"({"schema":"driftd-schema/1","kind":"instance","revision":1,"class":"config","attributes":{
    "load":{"class":"health"},"deep.seen":{"volatile":true},"lst.*.made":{"computed":true},"doc":{"type":"json"},"t":{"type":"duration","unit":"ms"},
    "byname":{"collection":"map","keys":["n"]},"some":{"collection":"set"},"password":{"sensitive":true}}})";
  const std::string schema_file_ = folder_.write("s.json", kSchema);
  const std::shared_ptr<const core::KindSchema> schema_ = core::KindSchema::parse(kSchema).value();
};

TEST_F(Partial, SaysWhatTheAgentSaysOfAnExpectation) {
  const Expected cases[] = {
      {R"({"deep":{"x":1}})", kOk, ""},  // members that are not named are not compared
      {R"({"deep":{"x":1,"z":null}})", kOk, ""},
      {R"({"deep":{"z":null}})", kOk, ""},
      {R"({"deep":{"y":null}})", kFinding, "deep.y (absent) → 2"},
      {R"({"deep":{"x":2,"y":2}})", kFinding, "deep.x 2 → 1"},
      {R"({"deep":{}})", kFinding, "deep.x (absent) → 1, deep.y (absent) → 2"},
      {R"({"deep.x":1})", kOk, ""},
      {R"({"deep.x":1,"deep":{"y":2}})", kOk, ""},
      {R"({"[\"deep\"].x":1})", kOk, ""},
      {R"({"lst[0].n":1})", kOk, ""},
      {R"({"lst[n=1].v":3})", kFinding, R"(lst [{"n":1,"v":3}] → [{"n":1,"v":2}])"},
      {R"({"lst":[{"n":1,"v":2}]})", kOk, ""},
      {R"({"lst":[{"n":1,"v":2,"gone":null}]})", kOk, ""},
      {R"({"lst":[{"n":1}]})", kFinding, R"(lst [{"n":1}] → [{"n":1,"v":2}])"},  // a list is the whole list
      {R"({"lst":null})", kFinding, R"(lst (absent) → [{"n":1,"v":2}])"},
      {R"({"gone":{"deeper":{"still":null}}})", kOk, ""},
      {R"({"gone":{"x":1,"y":2}})", kFinding, R"(gone {"x":1,"y":2} → (absent))"},
      {R"({"none":null})", kOk, ""},  // null on the system's side means that there is no value
      {R"({"id":{"x":1}})", kFinding, "id.x 1 → (absent)"},
      {R"({"deep.*":1})", kUsage, ""},
      {R"({"deep.x":1,"deep[\"x\"]":1})", kUsage, ""},  // the same path, written in two ways
      {R"({})", kUsage, ""},
  };
  for (const auto& one : cases) {
    std::string says;
    EXPECT_EQ(compare_both(one.where, kLive, &says), one.code) << one.where;
    EXPECT_EQ(says, one.says) << one.where;
  }
}

TEST_F(Partial, HoldsTheRulesOfTheSchema) {
  EXPECT_EQ(compare_both(R"({"doc":{"a":1}})", R"({"doc":"{\"a\": 1}"})"), kOk) << "a JSON text is one value";
  EXPECT_EQ(compare_both(R"({"doc":{"a":1}})", R"({"doc":"{\"a\":1,\"b\":2}"})"), kFinding) << "and whole";
  EXPECT_EQ(compare_both(R"({"load":5})", R"({"load":6})"), kOk) << "health opens no drift";
  EXPECT_EQ(compare_both(R"({"lst":[{"n":1}]})", R"({"lst":[{"n":1,"made":9}]})"), kOk)
      << "what the system computes is not judged";
  EXPECT_EQ(compare_both(R"({"lst":[{"n":1,"v":null}]})", R"({"lst":[{"n":1,"v":null}]})"), kOk)
      << "null in a list, where the system says null";
  EXPECT_EQ(compare_both(R"({"t":"1s"})", R"({"t":1000})"), kOk);
  EXPECT_EQ(compare_both(R"({"byname":[{"n":"b"},{"n":"a","gone":null}]})", R"({"byname":[{"n":"a"},{"n":"b"}]})"),
            kOk);
}

/// Random objects over few names, so that they meet.
class Random {
 public:
  explicit Random(unsigned seed) : random_(seed) {}
  int dice(int sides) { return std::uniform_int_distribution<int>(0, sides - 1)(random_); }
  core::Value value(int depth) {
    switch (dice(depth > 0 ? 7 : 4)) {
      case 0:
        return {};
      case 1:
        return core::Value(std::to_string(dice(3)));
      case 2:
      case 3:
        return core::Value(core::Value::Number{std::to_string(dice(3))});
      case 4:
        return list(depth - 1);
      default:
        return object(depth - 1, 3);
    }
  }
  core::Value object(int depth, int most) {
    core::Value::Object out;
    for (int left = dice(most + 1); left > 0; --left) out[name()] = value(depth);
    return out;
  }
  core::Value body() {
    core::Value::Object out{{"load", core::Value(core::Value::Number{std::to_string(dice(3))})}};
    for (const char* each : {"a", "deep", "lst", "byname", "some", "doc"}) {
      if (dice(4) > 0) out[each] = value(3);
    }
    return out;
  }
  core::Value where() {
    core::Value::Object out;
    for (int left = 1 + dice(3); left > 0; --left) out[path()] = value(3);
    return out;
  }

 private:
  std::string name() {
    static const char* const kNames[] = {"n", "x", "seen", "made", "a.b"};
    return kNames[dice(5)];
  }
  core::Value list(int depth) {
    core::Value::Array out;
    for (int left = dice(3); left > 0; --left) out.push_back(value(depth));
    return out;
  }
  std::string path() {
    static const char* const kPaths[] = {"a",      "deep",          "deep.x",   "deep.x.n", "deep[\"a.b\"]",
                                         "lst",    "lst[0]",        "lst[0].n", "lst[1].x", "lst[n=1].x",
                                         "byname", "byname[n=1].x", "some",     "doc",      "doc.x",
                                         "load",   "gone.deeper",   "deep.*"};
    return kPaths[dice(18)];
  }
  std::mt19937 random_;
};

TEST_F(Partial, RandomExpectationsAreJudgedAsTheAgentJudgesThem) {
  int held = 0, drifted = 0, refused = 0;
  for (unsigned seed = 0; seed < 400; ++seed) {
    Random random(seed);
    const int code = compare_both(core::render(random.where()), core::render(random.body()));
    ++(code == kUsage ? refused : code == kFinding ? drifted : held);
    if (HasFailure()) FAIL() << "seed " << seed;
  }
  EXPECT_GT(held, 20);
  EXPECT_GT(drifted, 100);
  EXPECT_GT(refused, 10);
}

/// What an object asks of its members is what paths ask of them.
TEST_F(Partial, AnObjectMeansWhatItsPathsMean) {
  for (unsigned seed = 0; seed < 150; ++seed) {
    Random random(seed);
    const core::Value wanted = random.object(1, 3), live = random.object(2, 4);
    if (wanted.object()->empty()) continue;
    core::Value::Object flat;
    for (const auto& [name, value] : *wanted.object()) flat[core::Path().child("deep").child(name).render()] = value;
    const std::string body = core::render(core::Value::Object{{"deep", live}});
    std::string nested_says, flat_says;
    EXPECT_EQ(compare_both(core::render(core::Value::Object{{"deep", wanted}}), body, &nested_says),
              compare_both(core::render(flat), body, &flat_says));
    EXPECT_EQ(nested_says, flat_says);
    if (HasFailure()) FAIL() << "seed " << seed;
  }
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
