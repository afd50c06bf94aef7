// SPDX-License-Identifier: Apache-2.0
#include "resolver/settings.hpp"

#include <gmock/gmock.h>
#include <cstdlib>

namespace driftd::resolver {
namespace {

CommandLine read(std::vector<const char*> words) {
  words.insert(words.begin(), "driftd-resolver");
  return read_command_line(static_cast<int>(words.size()), words.data());
}

TEST(ResolverSettings, TheNamesAndDefaultsOfTheRfc) {
  ::setenv("BACKEND_BINDINGS", "state_store=orders-cache", 1);
  const auto from_environment = read({"--agent", "unix:/run/driftd/grpc.sock"});
  ASSERT_TRUE(from_environment.settings);
  EXPECT_EQ(from_environment.settings->bindings[0].backend, "orders-cache");
  EXPECT_EQ(from_environment.settings->output, "/config/backends.json");
  EXPECT_FALSE(from_environment.settings->follow);
  ::setenv("BACKEND_CONFIG_PATH", "/elsewhere/b.json", 1);
  EXPECT_EQ(read({"--agent", "unix:/s"}).settings->output, "/elsewhere/b.json");
  ::unsetenv("BACKEND_CONFIG_PATH");
  ::unsetenv("BACKEND_BINDINGS");
  EXPECT_EQ(read({"--agent", "unix:/s"}).exit_code, 2) << "there is no binding";
}

TEST(ResolverSettings, AMistakeEndsWithTwo) {
  for (const std::vector<const char*>& words :
       std::vector<std::vector<const char*>>{{"--bindings", "a=b"},
                                             {"--bindings", "a=b", "--agent", "unix:/s", "--interval", "1ms"},
                                             {"--bindings", "a=b", "--agent", "unix:/s", "--timeout", "5"},
                                             {"--bindings", "a=b", "--agent", "unix:/s", "--resolve-by", "nobody"},
                                             {"--bindings", "a: { service: \"h:6379\", secret: s }"},
                                             {"--bindings", "a=b", "--agent", "unix:/s", "--output", ""}}) {
    const auto line = read(words);
    EXPECT_FALSE(line.settings) << words.back();
    EXPECT_EQ(line.exit_code, 2) << words.back();
  }
  EXPECT_TRUE(read({"--bindings", "a: { service: \"h:6379\", secret: s }", "--namespace", "shop"}).settings);
}

}  // namespace
}  // namespace driftd::resolver
