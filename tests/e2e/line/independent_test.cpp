// SPDX-License-Identifier: Apache-2.0
// The libraries standardwebhooks and cloudevents accept what our webhook sink sends.
#include "world.hpp"

namespace driftd::test {
namespace {

TEST(Independent, StandardWebhooksAndCloudeventsAcceptWhatTheWebhookSinkSends) {
  const std::string secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
  const Output python =
      run({"sh", std::string(DRIFTD_SOURCE_DIR) + "/tests/support/venv.sh"}, {}, std::chrono::seconds(200));
  ASSERT_EQ(python.code, 0) << python.err;
  const TempDir dir;
  const std::string state = dir.write("infra/terraform.tfstate", tfstate(1, 3));
  HttpReceiver receiver;
  Agent agent(dir, "backends:\n" + terraform_backend(state) + "sinks:\n" + webhook_sink(receiver),
              {{"HOOK_SECRET", secret}});
  agent.start();
  ASSERT_TRUE(eventually([&] { return agent.established({"platform"}); })) << agent.log();
  replace_file(state, tfstate(1, 4));
  ASSERT_TRUE(eventually([&] { return events_of_webhook(receiver).count("platform/instance/kafka_topic.orders") > 0; }))
      << agent.log();
  const Output checked =
      run({python.out.substr(0, python.out.find('\n')),
           std::string(DRIFTD_SOURCE_DIR) + "/tests/support/check_webhook.py", receiver.log_file(), secret});
  EXPECT_EQ(checked.code, 0) << checked.out << checked.err;
  EXPECT_THAT(checked.out, testing::HasSubstr("requests verified"));
}

}  // namespace
}  // namespace driftd::test
