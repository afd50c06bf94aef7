// SPDX-License-Identifier: Apache-2.0
// driftd becomes driftd-grpc where the configuration has a section `grpc`, and holds no gRPC otherwise.
#include <sys/stat.h>
#include <filesystem>

#include "world.hpp"

namespace driftd::test {
namespace {

using testing::HasSubstr;
using testing::Not;

/// The programs alone in a folder, as a package that lost one of them.
class GrpcImage : public GrpcLine {
 protected:
  std::string copy(const std::string& program) const {
    const std::string folder = dir_.file("bin");
    std::filesystem::create_directories(folder);
    std::filesystem::copy_file(Agent::build("bin/" + program), folder + "/" + program);
    return folder + "/" + program;
  }
};

std::string link_of(pid_t pid) {
  return std::filesystem::read_symlink("/proc/" + std::to_string(pid) + "/exe").filename().string();
}

std::string mapped(pid_t pid) { return read_file("/proc/" + std::to_string(pid) + "/maps"); }

TEST_F(GrpcImage, OnlyAnAgentWithTheSectionHoldsTheLibrary) {
  {
    Agent without(dir_, "backends: []\n");
    without.start();
    ASSERT_TRUE(eventually([&] { return without.ask({"status"}).is_object(); }, std::chrono::seconds(60)));
    EXPECT_EQ(link_of(without.pid()), "driftd");
    EXPECT_THAT(mapped(without.pid()), Not(HasSubstr("libgrpc")));
    EXPECT_THAT(mapped(without.pid()), Not(HasSubstr("libcurl"))) << "no webhook asked for it";
    EXPECT_EQ(without.stop(), 0);
  }
  Agent with = agent();
  start(with);
  EXPECT_EQ(link_of(with.pid()), "driftd-grpc") << "the same process, so that systemd keeps its main PID";
  EXPECT_THAT(mapped(with.pid()), HasSubstr("libgrpc"));
}

TEST_F(GrpcImage, AMissingLibcurlIsNamedByWhatNeedsItAndStopsNothingElse) {
  const Agent agent(dir_, "sinks: { ops: { type: webhook, url: \"https://ops.example\", secret: \"${env:KEY}\" } }\n",
                    {{"KEY", "whsec_bm90IGEgc2VjcmV0LCBidXQgbG9uZyBlbm91Z2g="}});
  std::filesystem::create_directories(dir_.file("lib"));
  dir_.write("lib/libcurl.so.4", "");
  const auto driftd = [&](std::vector<std::string> words) {
    std::vector<std::string> command = {"env", "LD_LIBRARY_PATH=" + dir_.file("lib"),
                                        "KEY=whsec_bm90IGEgc2VjcmV0LCBidXQgbG9uZyBlbm91Z2g=", Agent::binary()};
    command.insert(command.end(), words.begin(), words.end());
    return run(command);
  };
  EXPECT_EQ(driftd({"version"}).code, 0);
  const Output asked = driftd({"--socket", dir_.file("admin.sock"), "status"});
  EXPECT_EQ(asked.code, 69);
  EXPECT_THAT(asked.err, HasSubstr("install the package libcurl4"));
  const Output refused = driftd({"validate", "--config", agent.config()});
  EXPECT_EQ(refused.code, 78);
  EXPECT_THAT(refused.err, HasSubstr("webhook ops: "));
  EXPECT_THAT(refused.err, HasSubstr("install the package libcurl4"));
}

TEST_F(GrpcImage, AMissingProgramIsNamedBeforeAnythingRuns) {
  const std::string driftd = copy("driftd");
  const Agent agent = this->agent();
  for (const char* command : {"validate", "run"}) {
    const Output refused = run({driftd, command, "--config", agent.config()});
    EXPECT_EQ(refused.code, 78) << command;
    EXPECT_THAT(refused.err, HasSubstr(dir_.file("bin/driftd-grpc") +
                                       ", which serves it, cannot be run: No such file or directory"));
    EXPECT_THAT(refused.err, HasSubstr("install it beside driftd, or remove the section"));
  }
}

// Found by an attack: the second program read an empty pipe, and ran with a configuration of nothing.
TEST_F(GrpcImage, AConfigurationThatCanBeReadOnceOnlyIsRefused) {
  const Agent agent = this->agent();
  const auto piped = [&](const std::string& program) {
    return run({"sh", "-c", "cat " + agent.config() + " | " + Agent::build("bin/" + program) + " validate /dev/stdin"});
  };
  const Output refused = piped("driftd");
  EXPECT_EQ(refused.code, 78) << refused.out;
  EXPECT_THAT(refused.err, HasSubstr("/dev/stdin is not a file that can be read twice"));
  EXPECT_EQ(piped("driftd-grpc").code, 0);
}

TEST_F(GrpcImage, AProgramThatOthersMayReplaceIsNotRun) {
  const std::string driftd = copy("driftd"), grpc = copy("driftd-grpc");
  copy("driftd-provider-host");
  const Agent agent = this->agent();
  EXPECT_EQ(run({driftd, "validate", "--config", agent.config()}).code, 0);
  ASSERT_EQ(::chmod(grpc.c_str(), 0777), 0);
  const Output refused = run({driftd, "validate", "--config", agent.config()});
  EXPECT_EQ(refused.code, 78);
  EXPECT_THAT(refused.err, HasSubstr("driftd-grpc, which serves it, cannot be run: "));
  EXPECT_THAT(refused.err, HasSubstr("others")) << refused.err;
}

}  // namespace
}  // namespace driftd::test
