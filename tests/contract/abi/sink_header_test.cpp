// SPDX-License-Identifier: Apache-2.0
// sink.h, the specification of sink plugins, by the rules that provider.h keeps (headers_test.cpp).
#include <gmock/gmock.h>
#include <regex>

#include "contract/abi/header_text.hpp"
#include "support/process.hpp"

namespace driftd::test {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

std::string sink_header() { return read_file(DRIFTD_SOURCE_DIR "/plugin-api/include/driftd/sink.h"); }

TEST(SinkHeader, EveryFunctionCarriesExactlyOneThreadTag) {
  const auto functions = functions_of(sink_header());
  EXPECT_THAT(functions, SizeIs(9 + 9 + 1)) << "host table, sink table, entry";
  for (const auto& function : functions) EXPECT_THAT(thread_tags(function.comment), SizeIs(1)) << function.name;
}

TEST(SinkHeader, EveryFunctionThatAnswersAStatusListsItsAnswers) {
  for (const auto& function : functions_of(sink_header())) {
    if (function.returns != "driftd_status") continue;
    const auto listed = answers(function.comment);
    const bool success =
        std::any_of(listed.begin(), listed.end(), [](const auto& word) { return word == "OK" || word == "common"; });
    EXPECT_TRUE(success) << function.name << " does not list OK";
  }
}

TEST(SinkHeader, EveryPointerHasALifetimeAndEveryStructItsSizeFirst) {
  for (const auto& declared : structs_of(sink_header())) {
    EXPECT_EQ(declared.members.at(0).type + " " + declared.members.at(0).name, "uint32_t size") << declared.name;
    for (const auto& member : declared.members) {
      if (member.type.find('*') == std::string::npos) continue;
      EXPECT_FALSE(lifetimes(member.comment).empty()) << declared.name << "." << member.name;
    }
  }
}

TEST(SinkHeader, EveryPointerThatAFunctionWritesThroughIsMarkedAsOut) {
  const std::regex output_parameter(R"((?:^|, *|\n *)(driftd_\w+)\* (\w+))");
  std::vector<std::string> seen;
  for (const auto& function : functions_of(sink_header())) {
    std::smatch found;
    if (!std::regex_search(function.parameters, found, output_parameter)) continue;
    seen.push_back(function.name);
    EXPECT_NE(function.comment.find("`" + found[2].str() + "` {out}"), std::string::npos) << function.name;
  }
  EXPECT_THAT(seen, UnorderedElementsAre("open", "driftd_sink_v1"));
}

TEST(SinkHeader, NothingWhoseSizeACompilerChoosesCrosses) {
  const std::regex type_of_unknown_size(
      R"(\b(enum|bool|_Bool|long|short|int|char|unsigned|union|size_t|float|wchar_t|time_t)\b[^(]*;|\.\.\.|: *\d+;|\w\[)");
  for (const auto& declared : structs_of(sink_header())) {
    for (const auto& member : declared.members) {
      const std::string text = member.type + " " + member.name + ";";
      EXPECT_FALSE(std::regex_search(text, type_of_unknown_size)) << declared.name << ": " << text;
    }
  }
}

TEST(SinkHeader, EveryStructAndMemberIsAssertedInTheLayout) {
  const std::string layout = read_file(DRIFTD_SOURCE_DIR "/plugin-api/abi/layout_sink.h");
  std::size_t members = 0;
  for (const auto& declared : structs_of(sink_header())) {
    EXPECT_NE(layout.find("DRIFTD_SIZE(" + declared.name + ", "), std::string::npos) << declared.name;
    for (const auto& member : declared.members) {
      ++members;
      EXPECT_NE(layout.find("DRIFTD_AT(" + declared.name + ", " + member.name + ", "), std::string::npos)
          << declared.name << "." << member.name;
    }
  }
  EXPECT_GE(members, 50u);
}

TEST(SinkHeader, ReadsInOneSitting) {
  const std::string text = sink_header();
  EXPECT_LE(std::count(text.begin(), text.end(), '\n'), 400);
}

}  // namespace
}  // namespace driftd::test
