// SPDX-License-Identifier: Apache-2.0
// Somebody removes or replaces a file of data_dir under a running agent, so the agent must end.
#include <filesystem>

#include "fault/store/child.hpp"

namespace driftd::test {
namespace {

namespace fs = std::filesystem;

class MovedFilesTest : public ::testing::TestWithParam<std::string> {
 protected:
  TempDir dir;
  std::string data = dir.file("data");
};

TEST_P(MovedFilesTest, CommitAfterItIsNotAcknowledged) {
  const int code = store_in_child(data, [&](Bench& bench) {
    fs::remove(data + "/" + GetParam());
    (void)bench.wait(bench->commit(page_of({}, {event_draft("a")})));
  });
  EXPECT_EQ(code, kFailStop);
}

TEST_P(MovedFilesTest, QuietAgentNoticesAtItsNextLook) {
  const int code = store_in_child(data, [&](Bench& bench) {
    fs::copy(data + "/" + GetParam(), data + "/copy");
    fs::rename(data + "/copy", data + "/" + GetParam());
    (void)bench.wait(bench->look());
  });
  EXPECT_EQ(code, kFailStop);
}

INSTANTIATE_TEST_SUITE_P(Store, MovedFilesTest, ::testing::Values("store.db", "store.db-wal", "lock"));

TEST(MovedFiles, UntouchedOnesAreNoReasonToStop) {
  TempDir dir;
  const int code = store_in_child(dir.file("data"), [&](Bench& bench) {
    for (int i = 0; i < 20; ++i) bench.get(bench->commit(page_of({}, {event_draft("a")})));
    if (!bench.wait(bench->look())) ::_exit(1);
  });
  EXPECT_EQ(code, 0);
}

}  // namespace
}  // namespace driftd::test
