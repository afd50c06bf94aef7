// SPDX-License-Identifier: Apache-2.0
// Starts and stops a thousand workers. Afterwards the agent uses no more than after the first few.
#include <gmock/gmock.h>
#include <filesystem>
#include <fstream>

#include "contract/host/core_thread.hpp"

namespace driftd::test {
namespace {

namespace fs = std::filesystem;

/// What would grow in the agent's process if a worker left something behind.
struct ResourceCounts {
  std::ptrdiff_t descriptors = 0, threads = 0, children = 0;
  long resident_kib = 0;
};

std::ptrdiff_t entries(const char* folder) {
  return std::distance(fs::directory_iterator(folder), fs::directory_iterator{});
}

ResourceCounts count_resources() {
  ResourceCounts out{entries("/proc/self/fd"), entries("/proc/self/task"), 0, 0};
  for (const auto& task : fs::directory_iterator("/proc/self/task")) {
    std::ifstream children(task.path() / "children");  // zombies are listed too
    for (std::string pid; children >> pid;) ++out.children;
  }
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    if (word == "VmRSS:") status >> out.resident_kib;
  }
  return out;
}

TEST(Starts, AThousandWorkersLeaveNoDescriptorThreadChildOrMemory) {
  constexpr int kWarmUp = 20;
  constexpr int kStarts = kSanitized ? 100 : 1000;
  Core core;
  const auto factory = host::make_session_factory(host_options(core));
  ResourceCounts before;
  for (int i = 0; i < kWarmUp + kStarts; ++i) {
    if (i == kWarmUp) before = count_resources();
    core::SessionSpec spec;
    spec.backend = "b";
    spec.provider = DRIFTD_BINARY_DIR "/tests/providers/tester.so";
    spec.settings_json = "{}";
    const auto session = factory->open(spec).value();
    const auto read = core.run(session->read({{"thing", "1"}}, std::chrono::seconds(30) * kPatience));
    ASSERT_TRUE(read) << i << ": " << read.error().message;
    ASSERT_EQ(session->status().restarts, 0u);
    core.run(session->stop());
  }
  core.until([] { return count_resources().children == 0; });
  const ResourceCounts after = count_resources();
  EXPECT_EQ(after.descriptors, before.descriptors);
  EXPECT_EQ(after.threads, before.threads);
  if (!kSanitized) {
    EXPECT_LT(after.resident_kib - before.resident_kib, 2048) << "KiB; a leak of 2 KiB for each start would reach this";
  }
}

}  // namespace
}  // namespace driftd::test
