// SPDX-License-Identifier: Apache-2.0
// The scan accepts the providers that we ship: their description, the schema of their settings, and a driftd-schema/1
// document for each kind.
#include <gtest/gtest.h>
#include <filesystem>
#include <set>

#include "contract/host/core_thread.hpp"

namespace driftd::test {
namespace {

TEST(ShippedProviders, EachOneIsFoundByTheScanWithoutAnError) {
  Core core;
  auto options = host_options(core);
  options.plugin_dirs = {DRIFTD_BINARY_DIR "/providers"};
  const auto factory = host::make_session_factory(options);
  const auto found = core.run(factory->scan());
  std::set<std::string> ids;
  for (const auto& f : found) {
    ASSERT_TRUE(f.info) << f.file << ": " << f.info.error().message;
    ids.insert((*f.info)->id);
  }
  EXPECT_EQ(ids, (std::set<std::string>{"kafka", "k8s", "keycloak", "postgres", "redis", "terraform"}));
}

}  // namespace
}  // namespace driftd::test
