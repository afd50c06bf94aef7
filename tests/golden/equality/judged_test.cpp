// SPDX-License-Identifier: Apache-2.0
// Golden cases that are no question of two values alone: stories/*.json judge a sighting against a baseline, with identity,
// rules, unread paths, order of time. One table with cases/ (EqualityCatalogue).
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <sstream>

#include "core/judge.hpp"

namespace driftd::core {
namespace {

const std::filesystem::path kStories = std::filesystem::path(DRIFTD_SOURCE_DIR) / "tests/golden/equality/stories";
constexpr Nanos kThen = 1'000'000'000'000, kLater = kThen + 60'000'000'000;

Value load(const std::filesystem::path& file) {
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  auto value = parse(text.str());
  if (!value) ADD_FAILURE() << file << ": " << value.error().message;
  return value ? *value : Value(Value::Object{});
}

std::string text(const Value& value, std::string_view member) {
  const Value* found = value.find(member);
  return found != nullptr && found->string() != nullptr ? *found->string() : "";
}

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
Sighting sighting_of(const Value& pair) {
  const Value* now = pair.find("new");
  const Nanos at = text(pair, "order") == "older" ? kThen - 1 : kLater;
  if (now->is_null()) return Gone{at};
  if (now->string() != nullptr) return Unsure{*now->string(), at};
  Seen seen;
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

std::vector<std::filesystem::path> files() {
  std::vector<std::filesystem::path> out;
  for (const auto& entry : std::filesystem::directory_iterator(kStories)) out.push_back(entry.path());
  std::sort(out.begin(), out.end());
  return out;
}

class Judged : public testing::TestWithParam<std::filesystem::path> {};

TEST_P(Judged, EveryPairHasItsVerdict) {
  const Value file = load(GetParam());
  EXPECT_NE(text(file, "name"), "");
  EXPECT_NE(text(file, "sentence"), "");
  bool quiet = false, drift = false;
  const Value* pairs = file.find("pairs");
  ASSERT_TRUE(pairs != nullptr && pairs->array() != nullptr);
  for (const auto& pair : *pairs->array()) {
    const std::string expected = text(pair, "is");
    const Judgement judged = judge(context_of(file, pair), stored_of(pair), sighting_of(pair));
    EXPECT_EQ(verdict(judged), expected) << render(pair);
    (judged.transitions.empty() ? quiet : drift) = true;
  }
  EXPECT_TRUE(quiet) << "no pair that is no drift";
  EXPECT_TRUE(drift) << "no true-drift twin";
}

INSTANTIATE_TEST_SUITE_P(Stories, Judged, testing::ValuesIn(files()), [](const auto& info) {
  std::string name = info.param.stem().string();
  std::replace_if(name.begin(), name.end(), [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); }, '_');
  return name;
});

}  // namespace
}  // namespace driftd::core
