// SPDX-License-Identifier: Apache-2.0
// Golden cases that are no question of two values alone: stories/*.json judge a sighting against a baseline, with
// identity, rules, unread paths, order of time; or a sequence of sightings and decisions. One table with cases/
// (EqualityCatalogue).
#include <gtest/gtest.h>
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "core/judge/judge.hpp"
#include "core/judge/rules.hpp"
#include "core/value/schema.hpp"
#include "files.hpp"

namespace driftd::core {
namespace {

constexpr Nanos kThen = 1'000'000'000'000, kLater = kThen + 60'000'000'000;

std::vector<std::string> texts(const Value& value, std::string_view member) {
  std::vector<std::string> out;
  const Value* found = value.find(member);
  if (found == nullptr || found->array() == nullptr) return out;
  for (const auto& one : *found->array()) out.push_back(*one.string());
  return out;
}

JudgeContext context_of(const Value& file, const Value& pair) {
  Value::Object document{{"schema", Value("driftd-schema/1")}, {"kind", Value("thing")}};
  const Value* attributes = file.find("schema");
  document.emplace("attributes", attributes != nullptr ? *attributes : Value(Value::Object{}));
  auto schema = KindSchema::parse(render(Value(std::move(document))));
  if (!schema) ADD_FAILURE() << schema.error().message;
  Rules rules;
  rules.generation = 1;
  for (const auto& path : texts(pair, "ignore")) {
    IgnoreRule rule;
    rule.match.path = Glob::parse_path(path).value();
    rules.ignore.push_back(std::move(rule));
  }
  JudgeContext out;
  out.backend_uid = "0123456789abcdef";
  out.schema = schema ? *schema : KindSchema::unknown("thing");
  out.rules = std::make_shared<const Rules>(std::move(rules));
  out.established = true;
  out.now_ns = kLater;
  return out;
}

StoredResource stored_of(const Value& pair) {
  StoredResource out;
  out.id = {"thing", "t"};
  out.revision = 1;
  out.baseline = out.observed = render(*pair.find("old"));
  out.external_name = out.observed_external_name = text(pair, "old_name");
  out.observed_ns = kThen;
  return out;
}

/// `new`: a body; null: confirmed gone; the text "unknown": nothing could be read.
Reading sighting_of(const Value& pair) {
  const Value* now = pair.find("new");
  const Nanos at = kLater;
  if (now->is_null()) return Absent{at};
  if (now->string() != nullptr) return Unknown{*now->string(), at};
  Present seen;
  seen.observation.id = {"thing", "t"};
  seen.observation.body = render(*now);
  seen.observation.external_name = text(pair, "new_name");
  seen.observation.observed_ns = at;
  for (const auto& path : texts(pair, "unread")) seen.observation.unread.push_back({path, Code::denied, "denied"});
  for (const auto& path : texts(pair, "unsettled")) seen.demoted.push_back({path, true, "still applying"});
  return seen;
}

/// `changed a, b`, `deleted`, `recreated`; `unknown a`; `dropped`; `quiet`.
std::string verdict(const Judgement& judgement) {
  if (judgement.dropped) return "dropped";
  std::string out;
  for (const auto& transition : judgement.transitions) {
    out += (out.empty() ? "" : "; ") + std::string(render(transition.drift.operation));
    std::string paths;
    for (const auto& change : transition.drift.changes) {
      if (change.path != kIdentityPath && transition.drift.operation == Operation::changed) {
        paths += (paths.empty() ? " " : ", ") + change.path;
      }
    }
    out += paths;
  }
  for (const auto& unknown : judgement.unknown) {
    out += (out.empty() ? "" : "; ") + std::string("unknown") + (unknown.path.empty() ? "" : " " + unknown.path);
  }
  return out.empty() ? "quiet" : out;
}

/// One resource through a sequence of sightings and decisions, a minute apart; the first sighting is its baseline.
/// Every drift must have an id that no other had.
class Sequence {
 public:
  explicit Sequence(const Value& file) : context_(context_of(file, Value(Value::Object{}))) {
    row_.id = {"thing", "t"};
  }

  void set_policy(const std::string& action) {
    Rules rules = *context_.rules;
    PolicyRule rule;
    rule.match.path = Glob::parse_path("**").value();
    rule.action = parse_action(action).value();
    rules.policy.push_back(std::move(rule));
    context_.rules = std::make_shared<const Rules>(std::move(rules));
  }

  /// `pending a`, `pending a moved`, `reverted a`, `approved a` …; `quiet`; `conflict`.
  std::string take(const Value& step) {
    context_.now_ns += 60'000'000'000;
    const auto judged = step.find("sees") != nullptr ? sees(*step.find("sees")) : decides(step);
    if (!judged) return std::string(render(judged.error().code));
    row_ = judged->next;
    ++row_.revision;
    std::string out;
    for (const auto& transition : judged->transitions) {
      out += (out.empty() ? "" : "; ") + std::string(render(transition.drift.status));
      for (const auto& change : transition.changes) out += " " + change.path;
      if (transition.moved) out += " moved";
      const bool fresh = transition.from || ids_.insert(transition.drift.id).second;
      EXPECT_TRUE(fresh) << "an id twice: " << transition.drift.id;
    }
    return out.empty() ? "quiet" : out;
  }

 private:
  Result<Judgement> sees(const Value& body) {
    Present seen;
    seen.observation.id = row_.id;
    seen.observation.body = render(body);
    seen.observation.observed_ns = context_.now_ns;
    JudgeContext context = context_;
    context.established = row_.revision > 0;
    return judge(context, row_, seen);
  }
  /// `seen`: the body that the person looked at.
  Result<Judgement> decides(const Value& step) {
    Decision decision;
    decision.verb = text(step, "decides") == "reject" ? Decision::Verb::reject : Decision::Verb::approve;
    decision.actor = "somebody";
    decision.at_ns = context_.now_ns;
    if (row_.open.empty()) return fail(Code::not_found, "no open drift");
    decision.digest = row_.open.front().digest;
    if (const Value* looked_at = step.find("seen")) {
      std::vector<Change> changes = row_.open.front().changes;
      for (auto& change : changes) change.new_value = render(*find(*looked_at, Path::parse(change.path).value()));
      decision.digest = digest_of(changes, row_.open.front().against);
    }
    return decide(row_, row_.open.front().id, decision);
  }

  JudgeContext context_;
  StoredResource row_;
  std::set<std::string> ids_;
};

class Judged : public testing::TestWithParam<std::filesystem::path> {};

TEST_P(Judged, EveryPairHasItsVerdict) {
  const Value file = load(GetParam());
  EXPECT_NE(text(file, "name"), "");
  EXPECT_NE(text(file, "sentence"), "");
  bool quiet = false, drift = false;
  const Value* pairs = file.find("pairs");
  const Value* sequences = file.find("sequences");
  ASSERT_TRUE((pairs != nullptr && pairs->array() != nullptr) ||
              (sequences != nullptr && sequences->array() != nullptr));
  for (const auto& pair : pairs != nullptr ? *pairs->array() : Value::Array{}) {
    const std::string expected = text(pair, "is");
    const Judgement judged = judge(context_of(file, pair), stored_of(pair), sighting_of(pair));
    EXPECT_EQ(verdict(judged), expected) << render(pair);
    (judged.transitions.empty() ? quiet : drift) = true;
  }
  for (const auto& steps : sequences != nullptr ? *sequences->array() : Value::Array{}) {
    Sequence sequence(file);
    for (const auto& step : *steps.array()) {
      if (step.find("policy") != nullptr) {
        sequence.set_policy(text(step, "policy"));
        continue;
      }
      const std::string said = sequence.take(step);
      EXPECT_EQ(said, text(step, "is")) << render(step);
      (said == "quiet" ? quiet : drift) = true;
    }
  }
  EXPECT_TRUE(quiet) << "no pair that is no drift";
  EXPECT_TRUE(drift) << "no true-drift twin";
}

INSTANTIATE_TEST_SUITE_P(Stories, Judged, testing::ValuesIn(files("stories")), name_of_file);

}  // namespace
}  // namespace driftd::core
