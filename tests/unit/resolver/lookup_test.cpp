// SPDX-License-Identifier: Apache-2.0
#include "resolver/lookup.hpp"

#include <gmock/gmock.h>
#include <filesystem>

#include "support/process.hpp"

namespace driftd::resolver {
namespace {

TEST(ResolverLookup, ASecretOfServiceBindingIsASlot) {
  const test::TempDir dir;
  std::filesystem::create_directory(dir.file("cache"));
  Settings settings;
  settings.service_bindings = dir.path();
  Binding binding;
  binding.slot = "state_store";
  binding.mounted = "cache";
  Lookup lookup(settings, nullptr);
  const auto missing = lookup.find(binding);
  ASSERT_FALSE(missing);
  EXPECT_THAT(missing.error().message,
              testing::HasSubstr("failed to bind slot state_store: file:" + dir.file("cache/type")));
  for (const auto& [entry, value] :
       {std::pair("type", "postgresql"), std::pair("provider", "bitnami"), std::pair("host", "db.shop.svc"),
        std::pair("port", "5432"), std::pair("username", "app"), std::pair("password", "canary-0")}) {
    dir.write(std::string("cache/") + entry, value);
  }
  auto found = lookup.find(binding);
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found->backend.type, "postgres");
  EXPECT_EQ(found->backend.endpoint, "db.shop.svc:5432");
  EXPECT_EQ(found->backend.metadata.at("provider"), "bitnami");
  EXPECT_EQ(found->credential("username").reveal(), "app");
  EXPECT_EQ(found->credentials.size(), 2U);
  dir.write("cache/password", "canary-1");
  EXPECT_EQ(lookup.find(binding)->credential("password").reveal(), "canary-1");
}

}  // namespace
}  // namespace driftd::resolver
