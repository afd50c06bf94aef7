// SPDX-License-Identifier: Apache-2.0
// Every function of the ABI's headers says on which threads it may be called.
#include <gtest/gtest.h>
#include <filesystem>
#include <regex>

#include "support/process.hpp"

namespace driftd::test {
namespace {

const std::string kHeaders = DRIFTD_SOURCE_DIR "/plugin-api/include/driftd";

/// Function-pointer members of a header's structs, each with the comment right before it.
std::vector<std::pair<std::string, std::string>> functions(const std::string& text) {
  std::vector<std::pair<std::string, std::string>> out;
  static const std::regex kMember(R"(\n  [a-z][a-z0-9_ *]*\(\*([a-z_]+)\)\()");
  for (std::sregex_iterator it(text.begin(), text.end(), kMember), end; it != end; ++it) {
    const std::string before = text.substr(0, static_cast<std::size_t>(it->position()));
    const std::size_t comment = before.rfind("/*");
    const std::string between = comment == std::string::npos ? "" : before.substr(comment);
    const bool adjacent = between.size() >= 2 && between.compare(between.size() - 2, 2, "*/") == 0;
    out.emplace_back((*it)[1].str(), adjacent ? between : "");
  }
  return out;
}

bool tagged(const std::string& comment) {
  return std::regex_search(comment, std::regex(R"(^/\* \[(pure|serial|concurrent|call|any)\])"));
}

TEST(AbiTags, EveryFunctionPointerCarriesAThreadTag) {
  std::size_t seen = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(kHeaders)) {
    if (entry.path().extension() != ".h") continue;
    for (const auto& [name, comment] : functions(read_file(entry.path()))) {
      ++seen;
      EXPECT_TRUE(tagged(comment)) << entry.path() << ": " << name << " needs [pure|serial|concurrent|call|any]";
    }
  }
  EXPECT_GE(seen, 23u) << "12 of the host table, 10 of the provider table, watch";
}

TEST(AbiTags, AFunctionWithoutATagIsNoticed) {
  const auto found = functions("struct t {\n  /* [any] fine */\n  int (*good)(void);\n  int (*bad)(void);\n};");
  ASSERT_EQ(found.size(), 2u);
  EXPECT_TRUE(tagged(found[0].second));
  EXPECT_FALSE(tagged(found[1].second));
}

}  // namespace
}  // namespace driftd::test
