// SPDX-License-Identifier: Apache-2.0
// `driftd diff --known`: references to one thing by names that no rule can relate.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/exit_codes.hpp"
#include "command_result.hpp"
#include "support/process.hpp"

namespace driftd::cli {
namespace {

using test::TempDir;
using testing::HasSubstr;

constexpr const char* kState = R"({"version":4,"resources":[
    {"type":"aws_security_group","name":"web","instances":[{"attributes":{"id":"sg-1","name":"web","arn":"arn:aws:ec2:eu:1:security-group/sg-1"}}]},
    {"type":"aws_security_group","name":"db","instances":[{"attributes":{"id":"sg-2","name":"db"}}]},
    {"type":"aws_lb","name":"web","instances":[{"attributes":{"id":"lb-9","name":"web"}}]}]})";

class DiffKnown : public testing::Test {
 protected:
  TempDir folder_;
  std::string schema_ = folder_.write("s.json",
                                      R"({"schema":"driftd-schema/1","dialect":2,"kind":"k","attributes":{
        "groups":{"type":"reference","unit":"arn","collection":"set","refers":["aws_security_group"]},
        "rules":{"collection":"set"},"rules[*].from":{"type":"reference","unit":"arn"}}})");
  std::string state_ = folder_.write("t.tfstate", kState);

  CommandResult compare(const char* before, const char* after, std::vector<std::string> more = {}) {
    std::vector<std::string> words = {"diff", "--schema", schema_};
    words.insert(words.end(), more.begin(), more.end());
    words.push_back(folder_.write("a.json", before));
    words.push_back(folder_.write("b.json", after));
    return driftd(words);
  }
};

TEST_F(DiffKnown, NamesOfOneResourceInATerraformStateAreEqual) {
  const char* names = R"({"groups":["web","db"]})";
  const char* ids = R"({"groups":["sg-2","arn:aws:ec2:eu:1:security-group/sg-1"]})";
  EXPECT_EQ(compare(names, ids).code, kFinding);
  EXPECT_EQ(compare(names, ids, {"--known", state_}).code, kOk);
  EXPECT_EQ(compare(names, ids, {"--known", state_, "--partial"}).code, kOk);
  EXPECT_THAT(compare(names, ids, {"--known", state_, "--explain"}).out, HasSubstr("equal part by part"));
}

TEST_F(DiffKnown, NamesOfTwoResourcesDiffer) {
  EXPECT_EQ(compare(R"({"groups":["web"]})", R"({"groups":["sg-2"]})", {"--known", state_}).code, kFinding);
  EXPECT_EQ(compare(R"({"groups":["web"]})", R"({"groups":["sg-1","sg-2"]})", {"--known", state_}).code, kFinding);
}

TEST_F(DiffKnown, ANameOfAnotherTypeIsNotAName) {
  EXPECT_EQ(compare(R"({"groups":["web"]})", R"({"groups":["lb-9"]})", {"--known", state_}).code, kFinding);
  const char* by_name = R"({"rules":[{"from":"web","port":1},{"from":"db","port":2}]})";
  EXPECT_EQ(
      compare(by_name, R"({"rules":[{"from":"sg-2","port":2},{"from":"lb-9","port":1}]})", {"--known", state_}).code,
      kOk)
      << "a rule without refers takes any type";
  EXPECT_EQ(
      compare(by_name, R"({"rules":[{"from":"sg-2","port":1},{"from":"sg-1","port":2}]})", {"--known", state_}).code,
      kFinding);
}

TEST_F(DiffKnown, AListOfListsOfNamesIsReadToo) {
  const TempDir folder;
  const auto names = folder.write("n.json", R"([["web","sg-7"],["db","sg-8","database"]])");
  EXPECT_EQ(compare(R"({"groups":["database"]})", R"({"groups":["sg-8"]})", {"--known", names}).code, kOk);
  EXPECT_EQ(compare(R"({"groups":["database"]})", R"({"groups":["sg-7"]})", {"--known", names}).code, kFinding);
}

TEST_F(DiffKnown, AFileThatKnowsNoNamesIsRefused) {
  const TempDir folder;
  for (const auto& [text, says] : {std::pair("{}", "expected a Terraform state or a list of lists of names"),
                                   std::pair(R"([["a"]])", "[0]: expected a list of at least two names"),
                                   std::pair(R"([["a",1]])", "[0]: a name must be a text"),
                                   std::pair(R"({"resources":[{}]})", "resources: expected type and instances")}) {
    const CommandResult outcome = compare("{}", "{}", {"--known", folder.write("n.json", text)});
    EXPECT_EQ(outcome.code, kUsage) << text;
    EXPECT_THAT(outcome.err, HasSubstr(says));
  }
}

}  // namespace
}  // namespace driftd::cli
