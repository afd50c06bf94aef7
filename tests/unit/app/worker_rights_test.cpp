// SPDX-License-Identifier: Apache-2.0
// Whoever may write the worker's file could run code as the agent, so a worker that others may write is not started.
#include <gmock/gmock.h>
#include <sys/stat.h>

#include "app/record.hpp"
#include "support/process.hpp"

namespace driftd::app {
namespace {

TEST(WorkerRights, AWorkerThatOthersMayWriteIsRefusedByItsPath) {
  test::TempDir folder;
  config::Config config;
  config.agent.worker = folder.write("driftd-provider-host", "a worker");
  ASSERT_EQ(::chmod(config.agent.worker.c_str(), 0755), 0);
  const Status good = check_workers(config);
  EXPECT_TRUE(good) << good.error().message;
  ASSERT_EQ(::chmod(config.agent.worker.c_str(), 0777), 0);
  const Status refused = check_workers(config);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message,
              testing::HasSubstr("the worker " + config.agent.worker + " is not run, because"));
}

}  // namespace
}  // namespace driftd::app
