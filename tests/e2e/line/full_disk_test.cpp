// SPDX-License-Identifier: Apache-2.0
// data_dir is on a file system of 1 MiB that is full for a while: nothing is sent that was not stored, and nothing is
// lost.
#include <unistd.h>
#include <filesystem>
#include <fstream>

#include "world.hpp"

namespace driftd::test {
namespace {

using std::chrono::seconds;
using testing::SizeIs;

TEST(FullDisk, AgentSaysSoGoesOnAndDeliversOnceThereIsRoomAgain) {
  if (::getuid() != 0) GTEST_SKIP() << "LOUD: needs root, it mounts a tmpfs in a mount namespace of its own";
  TempDir dir;
  NatsServer nats;
  const std::string state = dir.write("infra/terraform.tfstate", tfstate(7, 3));
  Agent agent(dir,
              "defaults:\n  interval: 200ms\nbackends:\n" + terraform_backend(state) + "sinks:\n" + nats_sink(nats));
  std::filesystem::create_directory(agent.data_dir());
  agent.start({"unshare", "-m", "sh", "-c", "mount -t tmpfs -o size=1m,mode=0700 tmpfs \"$0\" && exec \"$@\"",
               agent.data_dir()});
  ASSERT_TRUE(eventually([&] { return agent.established({"platform"}); }, seconds(40))) << agent.log();

  const std::string inside = "/proc/" + std::to_string(agent.pid()) + "/root" + agent.data_dir();
  ASSERT_TRUE(std::filesystem::exists(inside + "/store.db"));
  std::ofstream fill(inside + "/fill", std::ios::binary);
  const std::string block(4096, 'x');
  while (fill.write(block.data(), 4096).flush()) continue;
  fill.close();

  replace_file(state, tfstate(7, 4));
  ASSERT_TRUE(eventually([&] { return agent.log().find("were not stored") != std::string::npos; }, seconds(40)))
      << agent.log();
  EXPECT_TRUE(agent.running());
  EXPECT_TRUE(
      eventually([&] { return agent.backend("platform")->dump().find("full") != std::string::npos; }, seconds(40)))
      << agent.backend("platform")->dump();
  EXPECT_EQ(events_of_stream(nats).count("platform/instance/kafka_topic.orders"), 0u);

  std::filesystem::remove(inside + "/fill");
  EXPECT_TRUE(eventually([&] { return agent.rows({"drifts"}).size() == 1; }, seconds(40))) << agent.log();
  EXPECT_TRUE(eventually([&] { return events_of_stream(nats)["platform/instance/kafka_topic.orders"].size() == 1; },
                         seconds(40)))
      << agent.log();
  EXPECT_EQ(agent.stop(), 0);
}

}  // namespace
}  // namespace driftd::test
