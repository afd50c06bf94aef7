// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <atomic>
#include <filesystem>
#include <set>
#include <thread>

#include "driftd/consumer/credentials.hpp"
#include "support/process.hpp"

namespace driftd::consumer {
namespace {

using std::chrono::milliseconds;
using test::TempDir;

constexpr milliseconds kTime{5'000};

Result<std::string> resolved(const std::string& reference) {
  auto values = Resolvers().resolve({{"password", reference}}, kTime);
  if (!values) return tl::unexpected<Error>(values.error());
  return values->at("password").reveal();
}

std::string error_of(const std::string& reference) {
  const auto value = resolved(reference);
  return value ? "no error: " + *value : value.error().message;
}

TEST(ResolverTest, AVariableIsReadAndAMissingOneNamed) {
  ::setenv("DRIFTD_TEST_PASSWORD", "s3cret", 1);
  ::setenv("DRIFTD_TEST_EMPTY", "", 1);
  EXPECT_EQ(resolved("env:DRIFTD_TEST_PASSWORD"), "s3cret");
  EXPECT_EQ(error_of("env:DRIFTD_TEST_NOT_SET"), "env:DRIFTD_TEST_NOT_SET: the variable is not set");
  EXPECT_EQ(error_of("env:DRIFTD_TEST_EMPTY"), "env:DRIFTD_TEST_EMPTY: the variable is empty");
}

TEST(ResolverTest, AFileIsReadWithoutItsLastNewline) {
  TempDir dir;
  EXPECT_EQ(resolved("file:" + dir.write("a", "s3cret\n")), "s3cret");
  EXPECT_EQ(resolved("file:" + dir.write("b", "two\nlines\n\n")), "two\nlines\n");
  EXPECT_EQ(resolved("file:" + dir.write("c", "s3cret\r\n")), "s3cret");
  EXPECT_EQ(resolved("file:" + dir.write("d", std::string("with\0zero", 9))), std::string("with\0zero", 9));
}

TEST(ResolverTest, AFileThatIsNoValueSaysWhichAndWhy) {
  TempDir dir;
  const auto has = [](const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
  };
  const std::string gone = "file:" + dir.file("gone");
  EXPECT_EQ(error_of(gone), gone + ": cannot be opened: No such file or directory");
  EXPECT_TRUE(has(error_of("file:" + dir.write("empty", "\n")), "is empty"));
  EXPECT_TRUE(has(error_of("file:" + dir.path().string()), "is not a regular file"));
  EXPECT_TRUE(has(error_of("file:" + dir.write("large", std::string((1 << 20) + 1, 'x'))), "is larger than 1 MiB"));
  const std::string fifo = dir.file("fifo");
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  EXPECT_TRUE(has(error_of("file:" + fifo), "is not a regular file")) << "and it does not wait for a writer";
}

/// The volume of a Secret: files are links into `..data`, which is swapped at once.
class MountedSecret {
 public:
  explicit MountedSecret(const TempDir& dir) : root_(dir.path()) {
    publish(0);
    for (const char* key : {"username", "password"}) {
      std::filesystem::create_symlink(std::filesystem::path("..data") / key, root_ / key);
    }
  }
  void publish(int version) {
    const std::string folder = "..v" + std::to_string(version);
    std::filesystem::create_directory(root_ / folder);
    for (const char* key : {"username", "password"}) write(root_ / folder / key, key + std::to_string(version));
    std::filesystem::create_symlink(folder, root_ / "..data_tmp");
    std::filesystem::rename(root_ / "..data_tmp", root_ / "..data");
    if (version > 1) std::filesystem::remove_all(root_ / ("..v" + std::to_string(version - 2)));
  }
  std::map<std::string, std::string> references() const {
    return {{"username", "file:" + (root_ / "username").string()},
            {"password", "file:" + (root_ / "password").string()}};
  }

 private:
  static void write(const std::filesystem::path& path, const std::string& text) {
    FILE* file = std::fopen(path.c_str(), "w");
    std::fwrite(text.data(), 1, text.size(), file);
    std::fclose(file);
  }
  std::filesystem::path root_;
};

TEST(ResolverTest, NameAndPasswordOfAMountedSecretThatIsSwappedAllTheTimeAlwaysBelongTogether) {
  TempDir dir;
  MountedSecret secret(dir);
  std::atomic<bool> done{false};
  std::thread kubelet([&] {
    for (int version = 1; !done; ++version) secret.publish(version);
  });
  const Resolvers resolvers;
  std::set<std::string> seen;
  int unavailable = 0;
  for (int i = 0; i < 2'000; ++i) {
    const auto values = resolvers.resolve(secret.references(), kTime);
    if (!values) {  // faster than any kubelet: "the files change while they are read" is an answer, a mixture is none
      ++unavailable;
      continue;
    }
    const std::string name = values->at("username").reveal(), password = values->at("password").reveal();
    ASSERT_EQ(name.substr(8), password.substr(8)) << name << " " << password;
    seen.insert(name);
  }
  done = true;
  kubelet.join();
  EXPECT_GT(seen.size(), 3U) << "the test must see swaps; unavailable: " << unavailable;
}

TEST(ResolverTest, AReferenceOfAnotherFormNamesTheMemberAndNotTheText) {
  EXPECT_EQ(error_of("hunter2"),
            "credentials.password: credential reference: it has no scheme; a reference is `env:NAME`, `file:/path`, "
            "`k8s:<namespace>/<name>#<key>` or `agent:<backend>#<reference>`");
}

TEST(ResolverTest, ASchemeCanBeTurnedOff) {
  Resolvers resolvers;
  resolvers.set(CredentialReference::Scheme::env, nullptr);
  const auto values = resolvers.resolve({{"password", "env:HOME"}}, kTime);
  ASSERT_FALSE(values);
  EXPECT_EQ(values.error().code, Code::denied);
}

TEST(ResolverTest, OutsideOfAPodAKubernetesReferenceSaysWhatToUseInstead) {
  ::unsetenv("KUBERNETES_SERVICE_HOST");
  EXPECT_EQ(
      error_of("k8s:shop/cache#password"),
      "k8s:shop/cache#password: KUBERNETES_SERVICE_HOST is not set: this is no pod; use a `file:` or `env:` reference");
}

}  // namespace
}  // namespace driftd::consumer
