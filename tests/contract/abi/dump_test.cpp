// SPDX-License-Identifier: Apache-2.0
// Compares the ABI of the current headers with the committed dump, by abidiff.
#include <gmock/gmock.h>

#include "support/process.hpp"

namespace driftd::test {
namespace {

using ::testing::HasSubstr;

const std::string kDump = DRIFTD_SOURCE_DIR "/plugin-api/abi/driftd-1.0.abi";
constexpr int kChanged = 4, kIncompatible = 8;  // bits of abidiff's exit code

Output compare(const std::string& library) {
  return run({DRIFTD_ABIDIFF, "--no-show-locs", "--harmless", "--no-default-suppression", kDump, library}, {},
             std::chrono::minutes(2));
}

/// A library that is built from a copy of the headers in which one thing was changed.
class Changed : public ::testing::Test {
 protected:
  void replace(const std::string& header, const std::string& from, const std::string& to) {
    const std::string include = dir_.file("include");
    std::filesystem::copy(DRIFTD_SOURCE_DIR "/plugin-api/include", include, std::filesystem::copy_options::recursive);
    std::string text = read_file(include + "/driftd/" + header);
    const std::size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << header << " does not contain: " << from;
    text.replace(at, from.size(), to);
    dir_.write("include/driftd/" + header, text);
    const Output built = run({DRIFTD_CC, "-std=c11", "-g", "-O0", "-fPIC", "-shared", "-I", include, "-o", library_,
                              DRIFTD_SOURCE_DIR "/plugin-api/abi/probe.c"},
                             {}, std::chrono::minutes(2));
    ASSERT_EQ(built.code, 0) << built.err;
  }
  TempDir dir_;
  const std::string library_ = dir_.file("probe.so");
};

TEST(AbiDump, TheHeadersAreStillThoseOfTheDump) {
  const Output same = compare(DRIFTD_ABI_PROBE);
  EXPECT_EQ(same.code, 0)
      << "The ABI differs from its dump. If that is intended, run `ninja abi_dump`; see docs/plugin-abi.md\n"
      << same.out << same.err;
}

TEST(AbiDump, NamesNoFolderOfTheMachineThatMadeIt) {
  const std::string dump = read_file(kDump);
  EXPECT_GT(dump.size(), 10'000u);
  EXPECT_THAT(dump, HasSubstr("path='plugin-api/abi/probe.c'"));
  EXPECT_EQ(dump.find("comp-dir-path="), std::string::npos);
  EXPECT_EQ(dump.find("filepath="), std::string::npos);
}

TEST_F(Changed, AMemberInsertedMidStructIsReported) {
  replace("provider.h", "  driftd_str origin;", "  uint64_t inserted;\n  driftd_str origin;");
  const Output found = compare(library_);
  EXPECT_NE(found.code & kChanged, 0) << found.out << found.err;
  EXPECT_THAT(found.out, HasSubstr("inserted"));
}

TEST_F(Changed, AnotherTypeOfTheSameSizeIsReported) {
  replace("ext/discover.h", "  int64_t next_ms;", "  uint64_t next_ms;");
  const Output found = compare(library_);
  EXPECT_NE(found.code & kChanged, 0) << found.out << found.err;
}

TEST_F(Changed, AnotherSignatureIsReported) {
  replace("provider.h", "driftd_status (*permit)(driftd_call call, driftd_str bucket, uint32_t tokens);",
          "driftd_status (*permit)(driftd_call call, driftd_str bucket, uint64_t tokens);");
  const Output found = compare(library_);
  EXPECT_NE(found.code & kChanged, 0) << found.out << found.err;
}

TEST_F(Changed, AnotherNumberOfAStatusIsReported) {
  replace("provider.h", "#define DRIFTD_BUDGET 12", "#define DRIFTD_BUDGET 22");
  const Output found = compare(library_);
  EXPECT_NE(found.code & (kChanged | kIncompatible), 0) << found.out << found.err;
  EXPECT_THAT(found.out, HasSubstr("DRIFTD_BUDGET"));
}

}  // namespace
}  // namespace driftd::test
