// SPDX-License-Identifier: Apache-2.0
// The headers are the specification of the ABI. Checks what their comments must say about each function, pointer and
// number, and which types no struct may contain.
#include <gmock/gmock.h>
#include <regex>

#include "contract/abi/header_text.hpp"
#include "support/process.hpp"

namespace driftd::test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

std::string file_of(const std::string& path) { return path.substr(path.find("include/") + 8); }

/// Returns the statuses that provider.h defines, with their prefix `DRIFTD_`.
std::vector<DeclaredNumber> statuses() {
  const std::string text = read_file(abi_headers().front());
  const std::size_t from = text.find("typedef int32_t driftd_status;");
  return numbers_of(text.substr(from, text.find("/* ---- small structs") - from));
}

TEST(AbiHeaders, EveryFunctionCarriesExactlyOneThreadTag) {
  std::size_t seen = 0;
  for (const auto& path : abi_headers()) {
    for (const auto& function : functions_of(read_file(path))) {
      ++seen;
      EXPECT_THAT(thread_tags(function.comment), SizeIs(1)) << file_of(path) << ": " << function.name;
    }
  }
  EXPECT_EQ(seen, 12u + 10u + 4u + 6u + 1u) << "host table, provider table, extensions, callbacks, entry";
}

TEST(AbiHeaders, EveryFunctionThatAnswersAStatusListsItsAnswers) {
  std::set<std::string> known = {"common", "emit"};
  for (const auto& status : statuses()) known.insert(status.name.substr(std::string("DRIFTD_").size()));
  for (const auto& path : abi_headers()) {
    for (const auto& function : functions_of(read_file(path))) {
      if (function.returns != "driftd_status") continue;
      const auto listed = answers(function.comment);
      EXPECT_FALSE(listed.empty()) << file_of(path) << ": " << function.name;
      bool lists_success = false;  // OK itself, or a set of statuses that contains it
      for (const auto& word : listed)
        EXPECT_TRUE(known.contains(word)) << function.name << " lists the unknown status " << word;
      for (const auto& word : listed)
        lists_success = lists_success || word == "OK" || word == "common" || word == "emit";
      EXPECT_TRUE(lists_success) << file_of(path) << ": " << function.name << " does not list OK";
    }
  }
}

TEST(AbiHeaders, EveryStatusHasANumberOfItsOwnAndAMeaning) {
  std::set<std::string> numbers;
  for (const auto& status : statuses()) {
    EXPECT_GE(status.comment.size(), 10u) << status.name;
    EXPECT_TRUE(numbers.insert(status.value).second) << status.name << " has the same number as another status";
  }
  EXPECT_EQ(numbers.size(), 16u);
}

TEST(AbiHeaders, EveryPointerInAStructHasALifetime) {
  std::size_t seen = 0;
  for (const auto& path : abi_headers()) {
    for (const auto& declared : structs_of(read_file(path))) {
      for (const auto& member : declared.members) {
        if (member.type.find('*') == std::string::npos) continue;
        ++seen;
        EXPECT_FALSE(lifetimes(member.comment).empty()) << declared.name << "." << member.name;
      }
    }
  }
  EXPECT_GE(seen, 15u);
}

TEST(AbiHeaders, EveryPointerThatAFunctionWritesThroughIsMarkedAsOut) {
  const std::regex output_parameter(R"((?:^|, *|\n *)(driftd_\w+)\* (\w+))");
  std::vector<std::string> seen;
  for (const auto& path : abi_headers()) {
    for (const auto& function : functions_of(read_file(path))) {
      std::smatch found;
      if (!std::regex_search(function.parameters, found, output_parameter)) continue;
      seen.push_back(function.name);
      EXPECT_NE(function.comment.find("`" + found[2].str() + "` {out}"), std::string::npos)
          << file_of(path) << ": " << function.name << "(" << found[2] << ")";
    }
  }
  EXPECT_THAT(seen, UnorderedElementsAre("open", "refresh", "driftd_provider_v1", "discover"));
}

TEST(AbiHeaders, EveryTableHasALifetime) {
  std::vector<std::string> seen;
  for (const auto& path : abi_headers()) {
    const std::string text = read_file(path);
    for (std::size_t at = text.find("_table {"); at != std::string::npos; at = text.find("_table {", at + 1)) {
      seen.push_back(text.substr(text.rfind(' ', at) + 1, at + 6 - text.rfind(' ', at) - 1));
      const std::size_t line = text.rfind('\n', at), before = text.rfind("/*", line);
      EXPECT_THAT(lifetimes(text.substr(before, line - before)), ElementsAre("process")) << file_of(path);
    }
  }
  EXPECT_THAT(seen, UnorderedElementsAre("driftd_host_table", "driftd_provider_table", "driftd_apply_table",
                                         "driftd_upgrade_table", "driftd_discover_table", "driftd_watch_table"));
}

TEST(AbiHeaders, EveryStructStartsWithItsSize) {
  for (const auto& path : abi_headers()) {
    for (const auto& declared : structs_of(read_file(path))) {
      if (declared.name == "driftd_str") continue;  // its layout can never change, so it has no size
      EXPECT_EQ(declared.members.at(0).type + " " + declared.members.at(0).name, "uint32_t size") << declared.name;
    }
  }
}

TEST(AbiHeaders, NothingWhoseSizeACompilerChoosesCrosses) {
  const std::regex type_of_unknown_size(
      R"(\b(enum|bool|_Bool|long|short|int|char|unsigned|union|size_t|float|wchar_t|time_t)\b[^(]*;|\.\.\.|: *\d+;|\w\[)");
  for (const auto& path : abi_headers()) {
    for (const auto& declared : structs_of(read_file(path))) {
      for (const auto& member : declared.members) {
        const std::string text = member.type + " " + member.name + ";";
        const bool bytes = declared.name == "driftd_str" && member.name == "data";
        EXPECT_TRUE(bytes || !std::regex_search(text, type_of_unknown_size)) << declared.name << ": " << text;
      }
    }
    for (const auto& function : functions_of(read_file(path))) {
      EXPECT_FALSE(std::regex_search(function.returns + " r; " + function.parameters + ";", type_of_unknown_size))
          << function.name;
    }
  }
}

TEST(AbiHeaders, TheSpecificationReadsInOneSitting) {
  const std::string text = read_file(abi_headers().front());
  EXPECT_LE(std::count(text.begin(), text.end(), '\n'), 400);
}

TEST(AbiLayout, EveryStructAndMemberIsAsserted) {
  const std::string layout = read_file(DRIFTD_SOURCE_DIR "/plugin-api/abi/layout.h");
  std::size_t members = 0;
  for (const auto& path : abi_headers()) {
    for (const auto& declared : structs_of(read_file(path))) {
      EXPECT_NE(layout.find("DRIFTD_SIZE(" + declared.name + ", "), std::string::npos) << declared.name;
      for (const auto& member : declared.members) {
        ++members;
        EXPECT_NE(layout.find("DRIFTD_AT(" + declared.name + ", " + member.name + ", "), std::string::npos)
            << declared.name << "." << member.name;
      }
    }
  }
  EXPECT_GE(members, 190u);
}

TEST(AbiProbe, ReachesEveryStructEveryCallbackAndEveryNumber) {
  const std::string probe = read_file(DRIFTD_SOURCE_DIR "/plugin-api/abi/probe.c");
  for (const auto& path : abi_headers()) {
    const std::string text = read_file(path);
    for (const auto& declared : structs_of(text)) {
      EXPECT_NE(probe.find("DRIFTD_PROBE(" + declared.name + ")"), std::string::npos) << declared.name;
    }
    for (const auto& function : functions_of(text)) {
      if (!function.name.ends_with("_fn")) continue;
      EXPECT_NE(probe.find("DRIFTD_PROBE(" + function.name + ")"), std::string::npos) << function.name;
    }
    for (const auto& number : numbers_of(text)) {
      if (number.name == "DRIFTD_ABI_MINOR") continue;  // it rises with each extension of the ABI
      EXPECT_NE(probe.find("DRIFTD_NUMBER(" + number.name + ")"), std::string::npos) << number.name;
    }
  }
}

// Controls of the tests above: the parser sees it if a header breaks the rules.
const std::string kBad = R"(
/* no tag at all */
typedef driftd_status (*bad_fn)(void* user);
typedef struct bad {
  uint32_t size;
  uint32_t reserved;
  /* [any] and [call]: one too many. -> OK */
  driftd_status (*two)(driftd_call call);
  const char* text; /* who owns it? */
  const char* kept; /* {process} static */
} bad;
#define DRIFTD_BARE 3
#define DRIFTD_TOLD 4 /* a meaning */
)";

TEST(AbiHeaders, AFunctionWithoutATagOrWithTwoIsNoticed) {
  const auto functions = functions_of(kBad);
  ASSERT_THAT(functions, SizeIs(2));
  EXPECT_THAT(thread_tags(functions[0].comment), IsEmpty());
  EXPECT_THAT(answers(functions[0].comment), IsEmpty());
  EXPECT_THAT(thread_tags(functions[1].comment), ElementsAre("any", "call"));
  EXPECT_THAT(answers(functions[1].comment), ElementsAre("OK"));
}

TEST(AbiHeaders, APointerWithoutALifetimeAndANumberWithoutAMeaningAreNoticed) {
  const auto structs = structs_of(kBad);
  ASSERT_THAT(structs, SizeIs(1));
  ASSERT_THAT(structs[0].members, SizeIs(5));
  EXPECT_EQ(structs[0].members[2].type, "function");
  EXPECT_THAT(lifetimes(structs[0].members[3].comment), IsEmpty());
  EXPECT_THAT(lifetimes(structs[0].members[4].comment), ElementsAre("process"));
  const auto numbers = numbers_of(kBad);
  ASSERT_THAT(numbers, SizeIs(2));
  EXPECT_EQ(numbers[0].comment, "");
  EXPECT_EQ(numbers[1].comment, "/* a meaning */");
}

}  // namespace
}  // namespace driftd::test
