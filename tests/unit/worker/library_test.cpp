// SPDX-License-Identifier: Apache-2.0
#include "worker/library.hpp"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <exception>

namespace driftd::worker {
namespace {

/// Returns the path of a library that is in this process anyway and is not a provider.
std::string standard_library() {
  Dl_info found{};
  EXPECT_NE(::dladdr(reinterpret_cast<void*>(&std::set_terminate), &found), 0);
  return found.dli_fname;
}

// A broken in-process provider is tried again and again. AddressSanitizer finds what a refusal leaves behind.
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
