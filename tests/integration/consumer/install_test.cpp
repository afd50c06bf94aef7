// SPDX-License-Identifier: Apache-2.0
// The library as a user gets it: installed, found by pkg-config, linked to the program of docs/consume.md.
#include <cstdlib>

#include "world.hpp"

namespace driftd::test {
namespace {

TEST(ConsumerInstalled, TheExampleBuildsWithPkgConfigAlone) {
  if (std::string(DRIFTD_SANITIZED) != "")
    GTEST_SKIP() << "LOUD: the installed library needs the sanitizer's flags, which pkg-config does not give";
  TempDir dir;
  const std::string prefix = dir.file("prefix"), source = std::string(DRIFTD_SOURCE_DIR) + "/examples/consumers/cpp/";
  const Output installed = run({"cmake", "--install", DRIFTD_BINARY_DIR, "--component", "consumer", "--prefix", prefix},
                               {}, std::chrono::seconds(60));
  ASSERT_EQ(installed.code, 0) << installed.err;
  const std::string build = "export PKG_CONFIG_PATH=$(dirname $(find " + prefix +
                            " -name driftd_consumer.pc)) && c++ -std=c++20 " + source + "main.cpp " + source +
                            "redis_slot.cpp -o " + dir.file("order_consumer") +
                            " $(pkg-config --cflags --libs driftd_consumer hiredis)";
  const Output built = run({"sh", "-c", build}, {}, std::chrono::seconds(200));
  ASSERT_EQ(built.code, 0) << built.err;
  const Output usage = run({dir.file("order_consumer")});
  EXPECT_EQ(usage.code, 2);
  EXPECT_NE(usage.err.find("usage:"), std::string::npos) << usage.err;
}

}  // namespace
}  // namespace driftd::test
