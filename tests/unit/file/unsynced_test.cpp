// SPDX-License-Identifier: Apache-2.0
// The file sink under a real runner: a file that somebody removes with lines that were not synced.
#include <gtest/gtest.h>
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "delivery/relay.hpp"
#include "sinks/file/file_sink.hpp"
#include "support/memory_outbox.hpp"
#include "support/process.hpp"
#include "support/sink_events.hpp"
#include "unit/delivery/fakes.hpp"

namespace driftd::sinks {
namespace {

using namespace std::chrono_literals;

class UnsyncedFile : public ::testing::Test {
 protected:
  void SetUp() override {
    auto sink = open_file("s", FileSettings{path_}, core_.get_executor());
    relay_ = std::make_unique<delivery::Relay>(core_.get_executor(), outbox_, clock_, delivery::RelaySettings{});
    relay_->add_sink("s", "file", std::move(sink));
    asio::co_spawn(core_, relay_->start(), [](std::exception_ptr, const Status& started) { EXPECT_TRUE(started); });
    settle();
  }
  void settle() {
    core_.restart();
    while (core_.poll() != 0) core_.restart();
  }
  /// Commits an event of the only resource.
  void commit() {
    core::StoredEvent event = test::sample_stored(static_cast<std::int64_t>(outbox_.events.size()) + 1);
    event.key = "k";
    outbox_.add(std::move(event));
    relay_->wake();
    settle();
  }
  void pass(std::chrono::nanoseconds by) {
    clock_.advance(by);
    relay_->watch();
    settle();
  }
  /// Returns the numbers of the events in the file.
  std::vector<int> lines() const {
    std::vector<int> out;
    std::ifstream in(path_);
    for (std::string line; std::getline(in, line);) {
      const std::string id = nlohmann::json::parse(line).at("id");
      out.push_back(std::stoi(id.substr(id.rfind('-') + 2)));
    }
    return out;
  }

  test::TempDir dir_;
  const std::filesystem::path path_ = dir_.file("events.jsonl");
  asio::io_context core_;
  delivery::test::FakeClock clock_;
  test::MemoryOutbox outbox_;
  std::unique_ptr<delivery::Relay> relay_;
};

// Found by reading: the file began with event 2, and then had both.
TEST_F(UnsyncedFile, ThatIsRemovedIsBegunAnewWithWhatItHad) {
  commit();
  ASSERT_EQ(lines(), (std::vector<int>{1}));
  std::filesystem::remove(path_);
  commit();
  for (int i = 0; i < 3; ++i) pass(1s);
  EXPECT_EQ(lines(), (std::vector<int>{1, 2}));
  EXPECT_EQ(outbox_.cursors["s"].low_water, 2);
  EXPECT_EQ(relay_->views().at(0).missed_wakeups, 0U);
}

TEST_F(UnsyncedFile, ThatIsRemovedAgainAndAgainDelaysOnly) {
  for (int i = 0; i < 10; ++i) {
    commit();
    std::filesystem::remove(path_);
    if (i % 3 == 0) pass(40s);
  }
  commit();
  for (int i = 0; i < 5; ++i) pass(31s);
  EXPECT_EQ(outbox_.cursors["s"].low_water, 11);
  const std::vector<int> left = lines();
  ASSERT_FALSE(left.empty());
  EXPECT_EQ(left.back(), 11);
  EXPECT_TRUE(std::is_sorted(left.begin(), left.end()));
  EXPECT_EQ(relay_->views().at(0).missed_wakeups, 0U);
}

}  // namespace
}  // namespace driftd::sinks
