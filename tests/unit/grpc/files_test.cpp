// SPDX-License-Identifier: Apache-2.0
#include "grpc/files.hpp"

#include <gtest/gtest.h>

namespace driftd::rpc {
namespace {

/// What is loopback by its form may be plain text (allow_plain_loopback), so no name may look like it.
TEST(Loopback, IsAnAddressOrLocalhostAndNoNameThatBeginsLikeOne) {
  for (const char* loopback : {"localhost:7070", "127.0.0.1:7070", "127.8.9.10:7070", "[::1]:7070"}) {
    EXPECT_TRUE(is_loopback(loopback)) << loopback;
  }
  for (const char* other : {"127.example.com:7070", "127.0.0.1.example.com:7070", "127.0.0.1evil:7070", "127.:7070",
                            "localhost.example.com:7070", "0.0.0.0:7070", "[::]:7070", "128.0.0.1:7070", ":7070"}) {
    EXPECT_FALSE(is_loopback(other)) << other;
  }
}

}  // namespace
}  // namespace driftd::rpc
