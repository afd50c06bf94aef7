// SPDX-License-Identifier: Apache-2.0
// `driftd diff --partial` says what the agent says of an expectation, and what it does not compare.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <set>

#include "cli/exit_codes.hpp"
#include "command_result.hpp"
#include "config/config.hpp"
#include "core/judge/judge.hpp"
#include "core/redact.hpp"
#include "core/resource.hpp"
#include "core/value/schema.hpp"
#include "support/process.hpp"

namespace driftd::cli {
namespace {

using test::TempDir;
using testing::HasSubstr;
using testing::Not;

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

TEST(Diff, DoesNotShowASecretThatIsExpectedInAnObjectForAListOfOne) {
  const TempDir folder;
  const auto schema = folder.write("s.json", R"({"schema":"driftd-schema/1","kind":"k","dialect":2,"attributes":{
      "p":{"single":true,"collection":"set"},"p[*].s":{"sensitive":true}}})");
  const auto where = folder.write("w.json", R"({"p":{"s":"hunter2","a":1}})");
  const auto other = folder.write("o.json", R"({"p":[{"s":"x","a":1}]})");
  const auto same = folder.write("l.json", R"({"p":[{"s":"hunter2","a":1}]})");
  for (const char* format : {"table", "json"}) {
    const CommandResult outcome =
        driftd({"-o", format, "diff", "--show", "**", "--explain", "--schema", schema, "--partial", where, other});
    EXPECT_EQ(outcome.code, kFinding) << outcome.out;
    EXPECT_THAT(outcome.out + outcome.err, Not(HasSubstr("hunter2")));
  }
  EXPECT_EQ(driftd({"diff", "--schema", schema, "--partial", where, same}).code, kOk);
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

}  // namespace
}  // namespace driftd::cli
