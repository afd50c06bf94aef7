// SPDX-License-Identifier: Apache-2.0
#include "base/slow_hash.hpp"

#include <gmock/gmock.h>
#include <sys/resource.h>
#include <unistd.h>
#include <fstream>

#include "base/digest.hpp"

namespace driftd {
namespace {

TEST(SlowHash, IsScryptAsTheRfcHasIt) {
  const auto out = slow_hash("pleaseletmein", "SodiumChloride");
  ASSERT_TRUE(out) << out.error().message;
  EXPECT_EQ(to_hex(*out), "7023bdcb3afd7348461c06cd81fd38ebfda8fbba904f8e3ea9b543f6545da1f2")
      << "RFC 7914, chapter 12, the third one";
}

/// Limits the memory to 4 MiB more than this process has now.
void take_the_memory_away() {
  std::size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  const rlim_t most = pages * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)) + (4u << 20);
  const rlimit limit{most, most};
  if (::setrlimit(RLIMIT_AS, &limit) != 0) ::_exit(3);
}

TEST(SlowHash, MemoryThatCannotBeHadIsAnError) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "LOUD: a sanitizer needs the address space";
#endif
  const auto starved = [] {
    take_the_memory_away();
    const auto out = slow_hash("x", "y");
    const bool said =
        !out && out.error().code == Code::unavailable && out.error().message.find("16 MiB") != std::string::npos;
    ::_exit(said ? 0 : 1);
  };
  EXPECT_EXIT(starved(), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace driftd
