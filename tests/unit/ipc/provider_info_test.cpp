// SPDX-License-Identifier: Apache-2.0
#include "ipc/provider_info.hpp"

#include <gmock/gmock.h>

namespace driftd::ipc {
namespace {

using ::testing::HasSubstr;

LoadAnswer sample(const std::string& more = "") {
  LoadAnswer loaded;
  loaded.file = "x.so";
  loaded.describe = R"({"id":"x","version":"1","types":["x"],"kinds":["thing"])" + more + "}";
  loaded.settings_schema = R"({"type":"object"})";
  loaded.kinds["thing"] =
      R"({"schema":"driftd-schema/1","kind":"thing","revision":1,"class":"config","title":"t","attributes":{}})";
  return loaded;
}

TEST(Describe, OptionalMembersHaveTheirDefaults) {
  const auto info = parse_info(sample());
  ASSERT_TRUE(info) << info.error().message;
  EXPECT_EQ((*info)->concurrency, 1);
  EXPECT_FALSE((*info)->has_watch);
  EXPECT_FALSE((*info)->has_diff);
}

TEST(Describe, WatchDiffAndConcurrencyAreRead) {
  LoadAnswer loaded = sample(R"(,"concurrency":4,"diff":true,"extensions":[{"id":"driftd.watch","revision":1}])");
  loaded.extensions = {{"driftd.watch", 1}};
  const auto info = parse_info(loaded);
  ASSERT_TRUE(info) << info.error().message;
  EXPECT_EQ((*info)->concurrency, 4);
  EXPECT_TRUE((*info)->has_watch);
  EXPECT_TRUE((*info)->has_diff);
}

/// Approving a resource of these kinds changes what the agent itself believes, so no plugin may use their names.
TEST(Describe, KindsOfTheAgentsOwnQuestionsAreRefused) {
  for (const std::string kind : {"backend", "claim", "scope"}) {
    LoadAnswer loaded = sample();
    loaded.describe = R"({"id":"x","version":"1","types":["x"],"kinds":["thing",")" + kind + R"("]})";
    loaded.kinds[kind] = R"({"schema":"driftd-schema/1","kind":")" + kind +
                         R"(","revision":1,"class":"config","title":"t","attributes":{}})";
    const auto info = parse_info(loaded);
    ASSERT_FALSE(info) << kind;
    EXPECT_THAT(info.error().message, HasSubstr("x.so: describe: kind `" + kind + "` is reserved for the agent"));
  }
}

TEST(Describe, FreeFormValuesAreNamedByKindOrKindAndId) {
  const auto info = parse_info(sample(R"(,"free_form":{"thing":["env.*"],"thing/*.*":["**"]})"));
  ASSERT_TRUE(info) << info.error().message;
  ASSERT_EQ((*info)->free_form.size(), 2u);
  EXPECT_EQ((*info)->free_form[0].kind + " " + (*info)->free_form[0].id + " " + (*info)->free_form[0].path,
            "thing  env.*");
  EXPECT_EQ((*info)->free_form[1].kind + " " + (*info)->free_form[1].id + " " + (*info)->free_form[1].path,
            "thing *.* **");
  for (const char* wrong : {R"("thing")", R"({"thing":"x"})", R"({"thing":["a..b"]})", R"({"thing":[1]})"}) {
    EXPECT_THAT(parse_info(sample(std::string(R"(,"free_form":)") + wrong)).error().message, HasSubstr("`free_form`"))
        << wrong;
  }
}

TEST(Describe, MistakesNameFileAndMember) {
  EXPECT_THAT(parse_info(sample(R"(,"concurrency":0)")).error().message, HasSubstr("x.so: describe: `concurrency`"));
  EXPECT_THAT(parse_info(sample(R"(,"diff":"yes")")).error().message, HasSubstr("x.so: describe: "));
  LoadAnswer nameless = sample();
  nameless.describe = R"({"version":"1"})";
  EXPECT_EQ(parse_info(nameless).error().message,
            "x.so: describe: `id` must be a text of 1 to 128 bytes without control characters");
  for (const auto* describe : {R"({"id":"x\u001b[31m","version":"1","types":["x"],"kinds":["thing"]})",
                               R"({"id":"x","version":"2.0\n2026-11-21 [b] crashed","types":["x"],"kinds":["thing"]})",
                               R"({"id":"x","version":"1","types":["x\n"],"kinds":["thing"]})",
                               R"({"id":"x","version":"1","types":["x"],"kinds":["thing","thing"]})"}) {
    LoadAnswer forged = sample();
    forged.describe = describe;
    EXPECT_FALSE(parse_info(forged)) << describe;
  }
  LoadAnswer many = sample();
  many.describe = R"({"id":"x","version":"1","types":["x"],"kinds":["thing")";
  for (int i = 0; i < 300; ++i) many.describe += ",\"k" + std::to_string(i) + "\"";
  many.describe += "]}";
  EXPECT_THAT(parse_info(many).error().message, HasSubstr("`kinds` must be a list of 1 to 256 names, each once"));
  LoadAnswer large = sample();
  large.kinds["thing"].append(2u << 20, ' ');
  EXPECT_THAT(parse_info(large).error().message, HasSubstr("schema of kind `thing` has"));
  LoadAnswer odd = sample();
  odd.settings_schema = R"({"type":"object","properties":{"p":{"type":"string","writeOnly":"yes"}}})";
  EXPECT_THAT(parse_info(odd).error().message,
              HasSubstr("settings.p: `writeOnly` must be true or false, found \"yes\""));
  LoadAnswer bare = sample();
  bare.kinds.clear();
  EXPECT_EQ(parse_info(bare).error().message, "x.so: kind `thing` has no schema");
}

}  // namespace
}  // namespace driftd::ipc
