// SPDX-License-Identifier: Apache-2.0
#include "admin/user_names.hpp"

#include <gtest/gtest.h>
#include <unistd.h>
#include <atomic>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_future.hpp>
#include <future>

#include "support/patience.hpp"

namespace driftd::admin {
namespace {

using Clock = std::chrono::steady_clock;

struct UserNamesTest : testing::Test {
  std::shared_ptr<UserNames> names = std::make_shared<UserNames>();
  std::string of(std::uint32_t uid) {
    asio::io_context core;
    auto name = asio::co_spawn(core, UserNames::of(names, uid), asio::use_future);
    core.run();
    return name.get();
  }
};

TEST_F(UserNamesTest, AreAskedForOnceAndKept) {
  const auto asked = std::make_shared<std::atomic<int>>(0);
  names->find = [asked](std::uint32_t uid) {
    ++*asked;
    return "user" + std::to_string(uid);
  };
  EXPECT_EQ(of(1001), "user1001");
  EXPECT_EQ(of(1001), "user1001");
  EXPECT_EQ(of(1002), "user1002");
  EXPECT_EQ(*asked, 2);
}

TEST_F(UserNamesTest, OfANameServiceThatHangsAreNumbersAndOneThreadWaitsForIt) {
  std::promise<void> answer;
  const auto asked = std::make_shared<std::atomic<int>>(0);
  names->find = [asked, hangs = answer.get_future().share()](std::uint32_t) {
    ++*asked;
    hangs.wait();
    return std::string("alice");
  };
  const auto began = Clock::now();
  EXPECT_EQ(of(1001), "uid:1001");
  EXPECT_LT(Clock::now() - began, UserNames::kPatience * 4 * driftd::test::kPatience);
  const auto again = Clock::now();
  EXPECT_EQ(of(1001), "uid:1001");
  EXPECT_LT(Clock::now() - again, UserNames::kPatience) << "it is known to hang";
  EXPECT_EQ(*asked, 1);
  answer.set_value();
  while (of(1001) != "alice") ASSERT_LT(Clock::now() - began, std::chrono::seconds(20));
}

/// Two requests of one user at the same time share one look-up.
TEST_F(UserNamesTest, ThatAreBeingFoundAreWaitedFor) {
  names->find = [](std::uint32_t) {
    std::promise<void> never;
    never.get_future().wait_for(UserNames::kPatience / 5);
    return std::string("alice");
  };
  asio::io_context core;
  auto first = asio::co_spawn(core, UserNames::of(names, 1001), asio::use_future);
  auto second = asio::co_spawn(core, UserNames::of(names, 1001), asio::use_future);
  core.run();
  EXPECT_EQ(first.get(), "alice");
  EXPECT_EQ(second.get(), "alice");
}

TEST_F(UserNamesTest, OfNobodyKnownAreNumbers) {
  EXPECT_EQ(of(3'999'999'999u), "uid:3999999999");
  EXPECT_EQ(of(0), "root");
}

}  // namespace
}  // namespace driftd::admin
