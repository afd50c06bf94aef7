// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "delivery/announcer.hpp"
#include "world.hpp"

namespace driftd::delivery::test {
namespace {

class AnnouncerTest : public ::testing::Test {
 protected:
  void publish(const std::string& what) {
    core::AgentEvent event;
    event.what = what;
    announcer_->publish(std::move(event));
    io_.restart();
    io_.poll();
  }
  void run_for(std::chrono::milliseconds time) {
    io_.restart();
    io_.run_for(time);
  }
  std::vector<std::string> told() const {
    std::vector<std::string> out;
    for (const auto& event : outbox_.told) out.push_back(event.what);
    return out;
  }

  FaultyOutbox outbox_;
  asio::io_context io_;
  int stored_ = 0;
  std::shared_ptr<Announcer> announcer_ = std::make_shared<Announcer>(
      io_.get_executor(), outbox_, [](const auto&) { return std::vector<std::string>{"s"}; }, [this] { ++stored_; });
};

TEST_F(AnnouncerTest, WhatTheStoreCannotTakeNowIsToldInOrderWhenItCan) {
  outbox_.broken = true;
  publish("parked");
  publish("budget");
  EXPECT_TRUE(told().empty());
  outbox_.broken = false;
  run_for(std::chrono::seconds(3));
  EXPECT_EQ(told(), (std::vector<std::string>{"parked", "budget"}));
  EXPECT_EQ(stored_, 2);
  EXPECT_TRUE(announcer_->idle());
}

TEST_F(AnnouncerTest, AStopGivesWhatWaitsOneMoreAttemptAndEnds) {
  outbox_.broken = true;
  publish("parked");
  outbox_.broken = false;
  announcer_->stop();
  run_for(std::chrono::milliseconds(50));
  EXPECT_EQ(told(), std::vector<std::string>{"parked"});
  outbox_.broken = true;
  publish("budget");
  run_for(std::chrono::milliseconds(50));
  EXPECT_TRUE(announcer_->idle());
}

}  // namespace
}  // namespace driftd::delivery::test
