// SPDX-License-Identifier: Apache-2.0
#include "host/describe.hpp"

#include <gmock/gmock.h>

namespace driftd::host {
namespace {

using ::testing::HasSubstr;

Loaded sample(const std::string& more = "") {
  Loaded loaded;
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
  Loaded loaded = sample(R"(,"concurrency":4,"diff":true,"extensions":[{"id":"driftd.watch","revision":1}])");
  loaded.extensions = {{"driftd.watch", 1}};
  const auto info = parse_info(loaded);
  ASSERT_TRUE(info) << info.error().message;
  EXPECT_EQ((*info)->concurrency, 4);
  EXPECT_TRUE((*info)->has_watch);
  EXPECT_TRUE((*info)->has_diff);
}

TEST(Describe, MistakesNameFileAndMember) {
  EXPECT_THAT(parse_info(sample(R"(,"concurrency":0)")).error().message, HasSubstr("x.so: describe: `concurrency`"));
  EXPECT_THAT(parse_info(sample(R"(,"diff":"yes")")).error().message, HasSubstr("x.so: describe: "));
  Loaded nameless = sample();
  nameless.describe = R"({"version":"1"})";
  EXPECT_EQ(parse_info(nameless).error().message, "x.so: describe: `id` must be a text that is not empty");
  Loaded bare = sample();
  bare.kinds.clear();
  EXPECT_EQ(parse_info(bare).error().message, "x.so: kind `thing` has no schema");
}

}  // namespace
}  // namespace driftd::host
