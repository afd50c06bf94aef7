// SPDX-License-Identifier: Apache-2.0
#include "worker/library.hpp"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <exception>

namespace driftd::worker {
namespace {

/// A library that this process has anyway and that is no provider.
std::string standard_library() {
  Dl_info found{};
  EXPECT_NE(::dladdr(reinterpret_cast<void*>(&std::set_terminate), &found), 0);
  return found.dli_fname;
}

// What a refusal leaves behind for ever shows under AddressSanitizer: a broken in-process provider is tried again and
// again.
TEST(Library, NoProviderIsRefusedEachTimeAndNothingOfItStays) {
  const std::string file = standard_library();
  for (int attempt = 0; attempt < 2; ++attempt) {
    const auto library = load_library(file, true);
    ASSERT_FALSE(library);
    EXPECT_EQ(library.error().code, Code::invalid);
    EXPECT_THAT(library.error().message, ::testing::StartsWith(file + ": does not export driftd_provider_v1"));
  }
}

TEST(Library, WhatIsNoLibraryIsRefusedWithTheReasonOfTheLoader) {
  const auto library = load_library("/etc/passwd", true);
  ASSERT_FALSE(library);
  EXPECT_EQ(library.error().code, Code::invalid);
  EXPECT_THAT(library.error().message, ::testing::MatchesRegex("/etc/passwd: cannot be loaded: .+"));
}

}  // namespace
}  // namespace driftd::worker
