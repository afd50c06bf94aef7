// SPDX-License-Identifier: Apache-2.0
// The installed SDK as an author outside this repository uses it, and which symbols a provider library exports.
#include <gmock/gmock.h>

#include <sstream>

#include "support/process.hpp"
#include "support/provider_probe.hpp"

namespace driftd::test {
namespace {

using testing::ElementsAre;
namespace fs = std::filesystem;
constexpr std::chrono::minutes kTimeout{4};

/// Returns the names of the symbols that a library defines for the dynamic linker.
std::vector<std::string> exports(const std::string& library) {
  const Output nm = run({"nm", "-D", "--defined-only", "--format=posix", library});
  EXPECT_EQ(nm.code, 0) << nm.err;
  std::vector<std::string> names;
  std::istringstream lines(nm.out);
  for (std::string line; std::getline(lines, line);) names.push_back(line.substr(0, line.find(' ')));
  return names;
}

/// The SDK, installed into a prefix of its own.
class InstalledSdk : public testing::Test {
 protected:
  InstalledSdk() {
    const Output done = run({DRIFTD_CMAKE, "--install", DRIFTD_BINARY_DIR, "--component", "sdk", "--prefix", prefix()});
    EXPECT_EQ(done.code, 0) << done.out << done.err;
  }
  std::string prefix() const { return dir_.file("prefix"); }
  std::string shell(const std::string& command) const {
    const Output done = run({"sh", "-ec", command}, {{"PKG_CONFIG_PATH", prefix() + "/share/pkgconfig"}}, kTimeout);
    EXPECT_EQ(done.code, 0) << command << '\n' << done.out << done.err;
    return done.out;
  }
  /// Loads a provider library that a test built, and refreshes the folder `data`, which contains one file, with it.
  Collected refreshed_by(const std::string& library) const {
    fs::create_directory(dir_.file("data"));
    dir_.write("data/a.conf", "one");
    ProviderProbe probe(fs::relative(library, DRIFTD_BINARY_DIR), {{"path", dir_.file("data")}, {"key", "t"}},
                        {{"t", "k"}});
    return probe.refresh();
  }
  const std::string example_ = DRIFTD_SOURCE_DIR "/examples/providers/cpp";
  TempDir dir_;
};

TEST_F(InstalledSdk, ExampleBuildsThroughFindPackageAndLoads) {
  const std::string build = dir_.file("build");
  shell(DRIFTD_CMAKE " -S " + example_ + " -B " + build + " -DCMAKE_PREFIX_PATH=" + prefix() +
        " -DCMAKE_CXX_COMPILER=" DRIFTD_CXX " && " DRIFTD_CMAKE " --build " + build);
  EXPECT_THAT(exports(build + "/files.so"), ElementsAre("driftd_provider_v1"));
  EXPECT_EQ(refreshed_by(build + "/files.so").complete.at("file"), 1u);
}

TEST_F(InstalledSdk, ExampleBuildsThroughPkgConfigAndLoads) {
  const std::string library = dir_.file("files.so");
  shell(DRIFTD_CXX " -std=c++20 -Wall -Wextra -Werror -shared -o " + library + " " + example_ +
        "/files.cpp $(pkg-config --cflags --libs driftd-plugin-api libcrypto)");
  EXPECT_THAT(exports(library), ElementsAre("driftd_provider_v1"));
  EXPECT_EQ(refreshed_by(library).complete.at("file"), 1u);
}

TEST_F(InstalledSdk, HeadersStandAloneInC11) {
  const std::string source = dir_.write("c.c",
                                        "#include <driftd/provider.h>\n#include <driftd/ext/watch.h>\n"
                                        "int size(void) { return (int)sizeof(driftd_watch_table); }\n");
  shell(DRIFTD_CC " -std=c11 -Wall -Wextra -Wpedantic -Werror $(pkg-config --cflags driftd-plugin-api) -c -o " +
        dir_.file("c.o") + " " + source);
}

TEST_F(InstalledSdk, EachHeaderCompilesByItself) {
  int headers = 0;
  for (const auto& entry : fs::recursive_directory_iterator(prefix() + "/include/driftd")) {
    if (!entry.is_regular_file()) continue;
    ++headers;
    shell(DRIFTD_CXX " -std=c++20 -Wall -Wextra -Wpedantic -Werror -fsyntax-only -I" + prefix() + "/include -include " +
          entry.path().string() + " -x c++ /dev/null");
  }
  EXPECT_EQ(headers, 21);
}

TEST_F(InstalledSdk, VersionIsThatOfTheAbiAndAnotherMajorIsRefused) {
  const std::string abi = std::to_string(DRIFTD_ABI_MAJOR) + "." + std::to_string(DRIFTD_ABI_MINOR);
  EXPECT_EQ(shell("pkg-config --modversion driftd-plugin-api"), abi + "\n");
  fs::create_directory(dir_.file("next"));
  dir_.write("next/CMakeLists.txt",
             "cmake_minimum_required(VERSION 3.25)\nproject(next LANGUAGES C)\n"
             "find_package(driftd_plugin_api 2.0 REQUIRED)\n");
  const Output refused =
      run({DRIFTD_CMAKE, "-S", dir_.file("next"), "-B", dir_.file("next/build"), "-DCMAKE_PREFIX_PATH=" + prefix()}, {},
          kTimeout);
  EXPECT_NE(refused.code, 0);
  EXPECT_THAT(refused.err, testing::ContainsRegex("version: " + abi));
}

TEST_F(InstalledSdk, NoFileNamesTheFolderItWasBuiltIn) {
  for (const auto& entry : fs::recursive_directory_iterator(prefix())) {
    if (!entry.is_regular_file()) continue;
    EXPECT_THAT(read_file(entry.path()), testing::Not(testing::HasSubstr(DRIFTD_SOURCE_DIR))) << entry.path();
  }
}

TEST(ProviderLibraries, ExportExactlyOneSymbol) {
  std::istringstream files(DRIFTD_PROVIDER_FILES);
  int count = 0;
  for (std::string file; std::getline(files, file, ':'); ++count) {
    EXPECT_THAT(exports(file), ElementsAre("driftd_provider_v1")) << file;
  }
  EXPECT_EQ(count, 10) << "six providers that we ship, and four examples";
}

}  // namespace
}  // namespace driftd::test
