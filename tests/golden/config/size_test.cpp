// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "config/config.hpp"

namespace driftd::config {
namespace {

std::string first_error(const std::string& text) {
  const auto loaded = parse(text, "driftd.yaml");
  return loaded ? "accepted" : render(loaded.error().front());
}

TEST(Size, AliasBombIsRefusedWithoutBeingExpanded) {
  std::string text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 12; ++i) {
    const std::string below = "*a" + std::to_string(i - 1);
    text += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + below;
    for (int j = 0; j < 9; ++j) text += ", " + below;
    text += "]\n";
  }
  EXPECT_NE(first_error(text).find("driftd.yaml:5:"), std::string::npos) << first_error(text);
  EXPECT_NE(first_error(text).find("more than 50000 nodes"), std::string::npos);
}

TEST(Size, TenMegabytesAreRefused) {
  EXPECT_NE(first_error("a: " + std::string(10u << 20, 'x'))
                .find("driftd.yaml:1:1: the file is too big; expected at most 1 MiB"),
            std::string::npos);
}

TEST(Size, DeepNestingIsRefusedWithoutACrash) {
  EXPECT_NE(first_error("a: " + std::string(100'000, '[')).find("not readable as YAML"), std::string::npos);
}

TEST(Size, EveryPrefixOfAConfigIsReadOrRefusedWithoutACrash) {
  const std::string text =
      "agent: { name: \"a\", plugin_dirs: [b, &c d, *c] }\nbackends:\n  - { name: x, provider: y }\n";
  for (std::size_t end = 0; end <= text.size(); ++end) {
    const auto loaded = parse(text.substr(0, end), "driftd.yaml");
    EXPECT_TRUE(loaded.has_value() || !loaded.error().empty()) << "prefix of " << end << " bytes";
  }
}

}  // namespace
}  // namespace driftd::config
