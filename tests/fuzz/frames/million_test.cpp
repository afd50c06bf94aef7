// SPDX-License-Identifier: Apache-2.0
// A million random frames of a hostile worker, over the real socket, with as many workers as that takes.
#include <gmock/gmock.h>
#include <unistd.h>
#include <fstream>

#include "fuzz/frames/hostile.hpp"

namespace driftd::test {
namespace {

using std::chrono::milliseconds;

/// Returns the resident memory of this process.
long resident_kib() {
  std::ifstream statm("/proc/self/statm");
  long total = 0;
  long resident = 0;
  statm >> total >> resident;
  return resident * (::sysconf(_SC_PAGESIZE) / 1024);
}

std::uint64_t frames_in(const std::string& count_file) {
  std::ifstream in(count_file, std::ios::binary);
  std::uint64_t frames = 0;
  in.read(reinterpret_cast<char*>(&frames), sizeof frames);
  return frames;
}

class Million : public Hostile {
 protected:
  /// Makes every call of a session, one after the other. Returns how many succeeded.
  Task<int> all_calls(core::Session* session) {
    const auto pages = std::make_shared<Pages>();
    const auto short_time = milliseconds(500);
    const core::RefreshRequest request{false, {}, {}, short_time};
    const core::PageHandler handler = drop();
    const auto refreshed = co_await session->refresh(request, handler);
    const std::vector<core::ResourceId> ids{{"thing", "1"}, {"thing", "9"}};
    const auto read = co_await session->read(ids, short_time);
    const auto health = co_await session->health();
    const std::vector<core::Change> changes(1, core::Change{"a", core::ChangeClass::config});
    const auto demoted = co_await session->demote(ids[0], changes);
    co_return (refreshed ? 1 : 0) + (read ? 1 : 0) + (health ? 1 : 0) + (demoted ? 1 : 0);
  }
  static core::PageHandler drop() {
    return [](core::RecordPage page) { return dropped(std::move(page)); };
  }
  static Task<Status> dropped(core::RecordPage) { co_return Status{}; }
};

TEST_F(Million, RandomFramesNeitherCrashTheAgentNorFillItsMemoryNorHoldUpAnotherBackend) {
  const std::string count_file = folder_.write("hostile.so", std::string(8, '\0'));
  core::SessionSpec random = spec(count_file, R"({"do":"random","seed":20261121})");
  random.budgets.records = 1'000'000;
  auto& bad = *sessions_.emplace_back(bad_->open(random).value());
  auto& good = open_good();
  ASSERT_TRUE(refresh(good));
  const long before = resident_kib();
  const long peak_before = peak_kib();
  const std::uint64_t wanted = kSanitized ? 100'000 : 1'000'000;
  while (frames_in(count_file) < wanted) {
    for (int i = 0; i < 20; ++i) core_.run(all_calls(&bad));
    const auto outcome = refresh(good, milliseconds(10'000) * kPatience);
    ASSERT_TRUE(outcome) << outcome.error().message;
  }
  EXPECT_EQ(good.status().restarts, 0u);
  EXPECT_GT(bad.status().restarts, 10u);
  EXPECT_THAT(events_, ::testing::Contains(::testing::HasSubstr("misbehaved: ")));
  for (const auto& event : events_) ASSERT_LT(event.size(), 2048u);
  if (!kSanitized) {
    EXPECT_LT(resident_kib() - before, 64 * 1024);
    EXPECT_LT(peak_kib() - peak_before, 64 * 1024);
  }
}

}  // namespace
}  // namespace driftd::test
