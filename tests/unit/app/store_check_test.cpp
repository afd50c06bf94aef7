// SPDX-License-Identifier: Apache-2.0
// What the agent does with the answer of `driftd verify`, here a script.
#include "app/store_check.hpp"

#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>
#include <filesystem>

#include "support/process.hpp"

namespace driftd::app {
namespace {

using testing::HasSubstr;

class StoreCheckTest : public testing::Test {
 protected:
  std::string script(const std::string& lines) {
    const std::string path = dir.write("driftd", "#!/bin/sh\n" + lines + "\n");
    std::filesystem::permissions(path, std::filesystem::perms(0700));
    return path;
  }
  std::string suspect() const { return dir.file("store.suspect"); }
  void check(const std::string& program) {
    Executors executors;
    StoreCheck check(dir.path(), executors, program);
    check.begin();
    EXPECT_FALSE(check.idle());
    executors.core.run();
    EXPECT_TRUE(check.idle());
  }

  test::TempDir dir;
};

TEST_F(StoreCheckTest, LeavesAWholeStoreAlone) {
  check(script("test \"$1 $2 $3\" = \"verify --background " + dir.file("store.db") + "\" && echo whole: 1 backends"));
  EXPECT_FALSE(std::filesystem::exists(suspect()));
}

TEST_F(StoreCheckTest, EndsTheProcessOfADamagedStoreAndMakesTheNextStartCheckIt) {
  const std::string program = script("echo 'damaged: row 7 of what'; exit 1");
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    check(program);
    std::_Exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 74);
  EXPECT_THAT(test::read_file(suspect()), HasSubstr("row 7 of what"));
}

TEST_F(StoreCheckTest, GoesOnIfItCannotBeChecked) {
  check(script("echo 'out of memory' >&2; exit 69"));
  check(dir.file("nothing-there"));
  EXPECT_FALSE(std::filesystem::exists(suspect()));
}

TEST_F(StoreCheckTest, StopDoesNotWaitForTheEndOfTheCheck) {
  Executors executors;
  StoreCheck check(dir.path(), executors, script("exec sleep 600"));
  check.begin();
  asio::post(executors.core, [&check] { check.cancel(); });
  executors.core.run_for(std::chrono::seconds(60));
  EXPECT_TRUE(check.idle());
}

}  // namespace
}  // namespace driftd::app
