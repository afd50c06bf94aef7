// SPDX-License-Identifier: Apache-2.0
// agent.installation_key must be a reference. It is read if this process can, and messages name its place but never its
// text.
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <filesystem>

#include "config/config.hpp"
#include "support/process.hpp"

namespace driftd::config {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kCanary = "key-canary-55e1";

class InstallationKey : public ::testing::Test {
 protected:
  Loaded load(const std::string& value) {
    return parse("agent:\n  data_dir: " + dir_.file("data") + "\n  installation_key: " + value + "\n",
                 dir_.file("driftd.yaml"), options_);
  }
  std::string refused(const std::string& value) {
    const auto loaded = load(value);
    if (!loaded) return render(loaded.error());
    ADD_FAILURE() << value;
    return {};
  }
  void give_credentials() {
    options_.environment = [this](const std::string& name) {
      return name == "CREDENTIALS_DIRECTORY" ? std::optional<std::string>(dir_.path().string()) : std::nullopt;
    };
  }

  test::TempDir dir_;
  LoadOptions options_{.environment = [](const std::string&) { return std::nullopt; }};
};

TEST_F(InstallationKey, IsReadFromAFileOrACredential) {
  give_credentials();
  dir_.write("driftd.key", std::string(kCanary) + "\n");
  for (const std::string& reference : {std::string("${credential:driftd.key}"), std::string("${file:driftd.key}"),
                                       "${file:" + dir_.file("driftd.key") + "}"}) {
    const auto loaded = load("\"" + reference + "\"");
    ASSERT_TRUE(loaded) << render(loaded.error());
    EXPECT_EQ(loaded->agent.installation_key, kCanary);
    EXPECT_EQ(loaded->agent.installation_key_from, reference);
    EXPECT_EQ(loaded->agent.installation_key_file, dir_.file("driftd.key"));
    EXPECT_THAT(loaded->secret_files, testing::Contains(dir_.file("driftd.key"))) << "workers are kept from it";
  }
}

TEST_F(InstallationKey, WhatIsNoReferenceIsRefusedAndNotRepeated) {
  for (const std::string value :
       {"key-canary-55e1", "\"${env:KEY}\"", "\"${exec:/bin/cat x}\"", "\"${file:a} key-canary-55e1\"",
        "[ key-canary-55e1 ]", "\"x ${file:a}\"", "{ a: key-canary-55e1 }", "\"\""}) {
    EXPECT_THAT(refused(value), AllOf(HasSubstr("driftd.yaml:3:21: 'installation_key' of 'agent' is not a reference"),
                                      HasSubstr("${credential:NAME} or ${file:PATH}"), HasSubstr("driftd key new"),
                                      Not(HasSubstr(kCanary))))
        << value;
  }
}

TEST_F(InstallationKey, WhatCannotBeReadIsToldWithItsPlaceAndTheWayOut) {
  dir_.write("open.key", kCanary);
  ::chmod(dir_.file("open.key").c_str(), 0622);
  dir_.write("empty.key", "");
  const std::pair<const char*, const char*> cases[] = {
      {"\"${file:missing.key}\"", "No such file"},
      {"\"${file:open.key}\"", "others may write it"},
      {"\"${file:empty.key}\"", "is empty"},
      {"\"${file:.}\"", "cannot be read"},
      {"\"${credential:driftd.key}\"", "$CREDENTIALS_DIRECTORY is not set"},
      {"\"${credential:a/b}\"", "has a slash"},
      {"\"${file:}\"", "names nothing"}};
  for (const auto& [value, why] : cases) {
    EXPECT_THAT(refused(value),
                AllOf(HasSubstr("driftd.yaml:3:21: "), HasSubstr(why), HasSubstr("driftd key new --out"),
                      HasSubstr("never make a new one"), Not(HasSubstr(kCanary))))
        << value;
  }
}

TEST_F(InstallationKey, AFileInDataDirIsRefusedAlsoThroughALink) {
  std::filesystem::create_directory(dir_.file("data"));
  dir_.write("data/installation.key", kCanary);
  std::filesystem::create_symlink(dir_.file("data/installation.key"), dir_.file("link.key"));
  std::filesystem::create_directory_symlink(dir_.file("data"), dir_.file("folder"));
  for (const char* path :
       {"data/installation.key", "link.key", "folder/installation.key", "./data/../data/other.key"}) {
    EXPECT_THAT(refused("\"${file:" + std::string(path) + "}\""),
                AllOf(HasSubstr("a backup of data_dir would hold the key"), HasSubstr("driftd.yaml:3:21")));
  }
  dir_.write("data.key", kCanary);
  EXPECT_TRUE(load("\"${file:data.key}\"")) << "a name that begins alike is another one";
}

TEST_F(InstallationKey, CommandBesideTheServiceReadsWhatItCan) {
  dir_.write("driftd.key", kCanary);
  options_.resolve_secrets = false;
  EXPECT_EQ(load("\"${file:driftd.key}\"")->agent.installation_key, "");
  options_.resolve_key = true;
  EXPECT_EQ(load("\"${file:driftd.key}\"")->agent.installation_key, kCanary);
  const auto credential = load("\"${credential:driftd.key}\"");
  ASSERT_TRUE(credential) << "the service's alone: " << render(credential.error());
  EXPECT_EQ(credential->agent.installation_key, "");
  EXPECT_EQ(credential->agent.installation_key_from, "${credential:driftd.key}");
  give_credentials();
  EXPECT_EQ(load("\"${credential:driftd.key}\"")->agent.installation_key, kCanary);
  EXPECT_THAT(refused("\"${file:missing.key}\""), HasSubstr("No such file"));
}

TEST_F(InstallationKey, AnotherPlaceOrAnotherTextWaitsForARestart) {
  dir_.write("driftd.key", "one");
  dir_.write("other.key", "one");
  const auto running = load("\"${file:driftd.key}\"");
  EXPECT_TRUE(compare(*running, *load("\"${file:driftd.key}\"")).restart.empty());
  const std::string where = dir_.file("driftd.yaml") + ":3";
  const std::vector<Comparison::RestartItem> waits{{"agent.installation_key", where}};
  EXPECT_EQ(compare(*running, *load("\"${file:other.key}\"")).restart, waits);
  dir_.write("driftd.key", "two");
  EXPECT_EQ(compare(*running, *load("\"${file:driftd.key}\"")).restart, waits);
}

}  // namespace
}  // namespace driftd::config
