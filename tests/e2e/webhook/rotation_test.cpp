// SPDX-License-Identifier: Apache-2.0
// A real agent whose webhook's secret is changed by reloads while events are delivered.
#include <gmock/gmock.h>
#include <fstream>

#include "base/digest.hpp"
#include "support/agent.hpp"
#include "support/http_receiver.hpp"

namespace driftd::test {
namespace {

using testing::HasSubstr;

const std::string kOld = "the-old-secret-of-24-byt", kNew = "the-new-secret-of-24-byt";

/// Returns true if this secret signed the request.
bool signed_by(const HttpReceived& request, const std::string& secret) {
  const auto& headers = request.headers;
  const std::string text = headers.at("webhook-id") + "." + headers.at("webhook-timestamp") + "." + request.body;
  return headers.at("webhook-signature").find("v1," + base64(hmac_raw(secret, text))) != std::string::npos;
}

class Rotation : public testing::Test {
 protected:
  Rotation()
      : state_(dir_.write("state/terraform.tfstate", state(1))),
        agent_(dir_,
               "defaults:\n  interval: 200ms\nbackends:\n  - { name: platform, provider: terraform, settings: { "
               "path: " +
                   state_ + " } }\nsinks:\n  hook: { type: webhook, url: \"" + receiver_.url() +
                   "\", allow_http_loopback: true, secrets: " + keys_ + " }\n") {}
  static std::string state(int serial) {
    return R"({"version":4,"terraform_version":"1.9.0","serial":)" + std::to_string(serial) +
           R"(,"lineage":"abc","outputs":{},"resources":[{"mode":"managed","type":"kafka_topic","name":"orders",)" +
           R"("provider":"p","instances":[{"attributes":{"partitions":)" + std::to_string(serial) + "}}]}]}";
  }
  /// Changes the system. Returns the request that reports it.
  HttpReceived next_request() {
    const auto before = receiver_.received().size();
    std::filesystem::rename(dir_.write("state/next", state(++serial_)), state_);
    EXPECT_TRUE(eventually([&] { return receiver_.received().size() > before; })) << agent_.log();
    return receiver_.received().back();
  }
  Output reload(const std::string& next) {
    std::string text = read_file(agent_.config());
    text.replace(text.find(keys_), keys_.size(), next);
    std::ofstream(agent_.config()) << text;
    keys_ = next;
    return run({Agent::binary(), "reload", "--config", agent_.config()});
  }

  TempDir dir_;
  HttpReceiver receiver_;
  int serial_ = 1;
  std::string keys_ = "[" + kOld + "]", state_;
  Agent agent_;
};

TEST_F(Rotation, ReloadsChangeTheSecretAndTheBooksStayExact) {
  agent_.start();
  ASSERT_TRUE(eventually([&] { return agent_.established({"platform"}); }, std::chrono::seconds(40))) << agent_.log();
  EXPECT_TRUE(signed_by(next_request(), kOld));
  const Output both = reload("[" + kNew + ", " + kOld + "]");
  EXPECT_THAT(both.out, HasSubstr("sinks.hook (its signing secrets)"));
  EXPECT_EQ(both.err.find("restart"), std::string::npos) << both.err;
  const HttpReceived second = next_request();
  EXPECT_TRUE(signed_by(second, kOld) && signed_by(second, kNew));
  EXPECT_NE(reload("[short]").code, 0);
  const HttpReceived third = next_request();
  EXPECT_TRUE(signed_by(third, kOld) && signed_by(third, kNew)) << "a reload that is refused changes nothing";
  EXPECT_EQ(reload("[" + kNew + "]").code, 0);
  const HttpReceived last = next_request();
  EXPECT_TRUE(signed_by(last, kNew) && !signed_by(last, kOld));
  EXPECT_TRUE(eventually([&] { return agent_.cli({"books"}).out.ends_with("\nexact\n"); }))
      << agent_.cli({"books"}).out;
  EXPECT_EQ(agent_.cli({"books"}).code, 0);
  const auto judged = agent_.ask({"books"}).at("judged");
  EXPECT_GE(judged.at("emitted").get<int>(), 4) << judged;
}

}  // namespace
}  // namespace driftd::test
