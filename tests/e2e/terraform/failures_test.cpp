// SPDX-License-Identifier: Apache-2.0
// A server of states fails in many ways. Each failure is reported by the backend's status and health, and none is a
// drift or a deletion.
#include <gmock/gmock.h>

#include "support/agent.hpp"
#include "support/certificates.hpp"
#include "support/nats.hpp"
#include "support/tofu.hpp"

namespace driftd::test {
namespace {

using nlohmann::json;
using std::chrono::seconds;

TEST(TerraformFailuresLine, NoneOfThemIsADriftOrADeletion) {
  Certificates certificates;
  certificates.issue("right", "127.0.0.1", "IP:127.0.0.1");
  certificates.issue("other", "other.example", "DNS:other.example");
  const Certificates other_ca;
  other_ca.issue("right", "127.0.0.1", "IP:127.0.0.1");
  const auto certified = [](const Certificates& of, const std::string& name, json more = json::object()) {
    more.update({{"certificate", of.certificate(name)}, {"key", of.key(name)}});
    return more;
  };
  StateServer server;
  Tofu tofu;
  const std::string lines = "backend \"http\" {\n address = \"" + server.url("/state/p") + "\"\n}";
  const auto apply = [&](int value) {
    tofu.configure("resource \"terraform_data\" \"a\" { input = " + std::to_string(value) +
                       " }\nresource \"terraform_data\" \"many\" { count = 3 }\n" +
                       "resource \"terraform_data\" \"big\" { input = join(\"\", [for i in range(60) : sha512(i)]) }\n",
                   lines);
    tofu.apply();
  };
  apply(1);
  const Front front(server.port(), certified(certificates, "right"));
  const TempDir dir;
  const NatsServer nats;
  Agent a(dir,
          "defaults: { interval: 1s }\nbackends:\n  - name: platform\n    provider: terraform\n    settings: { "
          "call_timeout_ms: 2000, backend: { type: http, address: "
          "\"https://127.0.0.1:" +
              std::to_string(front.port()) + "/state/p\", ca_file: " + certificates.ca() +
              " } }\nsinks:\n  bus: { type: nats, servers: [\"" + nats.url() + "\"], views: false }\n");
  a.start();
  ASSERT_TRUE(eventually([&] { return a.established({"platform"}); }, seconds(60))) << a.log();
  const auto status_shows = [&](const std::string& text) {
    return eventually([&] { return a.backend("platform")->dump().find(text) != std::string::npos; }, seconds(30));
  };
  const auto recovers = [&] {
    return eventually(
        [&] {
          return a.backend("platform")->at("state") == "ok" && a.backend("platform")->at("health").at("state") == "up";
        },
        seconds(60));
  };
  ASSERT_TRUE(recovers()) << a.backend("platform")->dump();
  for (const auto& [how, text] : std::vector<std::pair<json, std::string>>{
           {certified(certificates, "right", {{"status", 429}, {"headers", {{"Retry-After", "1"}}}}),
            "HTTP status 429"},
           {certified(certificates, "right", {{"status", 503}}), "HTTP status 503"},
           {certified(certificates, "right", {{"status", 403}}), "GET https://127.0.0.1"},
           {certified(certificates, "other"), "check the CA and the server name"},
           {certified(other_ca, "right"), "check the CA and the server name"}}) {
    front.behave(how);
    EXPECT_TRUE(status_shows(text)) << text << "\n" << a.backend("platform")->dump();
    EXPECT_TRUE(eventually([&] { return a.backend("platform")->at("health").at("state") != "up"; }, seconds(30)))
        << text;
    EXPECT_TRUE(a.rows({"drifts"}).empty());
    front.behave(certified(certificates, "right"));
    EXPECT_TRUE(recovers()) << text << "\n" << a.backend("platform")->dump();
  }
  front.behave(certified(certificates, "right", {{"cut", 4000}}));
  apply(2);
  EXPECT_TRUE(eventually([&] { return a.backend("platform")->at("state") != "ok"; }, seconds(30)));
  front.behave(certified(certificates, "right"));
  EXPECT_TRUE(recovers());
  server.pause();
  EXPECT_TRUE(eventually([&] { return a.backend("platform")->at("health").at("state") == "down"; }, seconds(30)))
      << a.backend("platform")->dump();
  server.resume();
  EXPECT_TRUE(recovers()) << a.backend("platform")->dump();
  server.stop();
  EXPECT_TRUE(eventually([&] { return a.backend("platform")->at("health").at("state") == "down"; }, seconds(30)))
      << a.backend("platform")->dump();
  for (const auto& row : a.rows({"drifts", "--all"})) EXPECT_NE(row["operation"], "deleted") << row.dump();
  EXPECT_TRUE(a.rows({"drifts"}).empty());
  std::vector<std::string> subjects;
  for (const auto& message : stream_contents(nats.url(), "DRIFT")) {
    if (message.subject.find("health") == std::string::npos) subjects.push_back(message.subject);
  }
  EXPECT_THAT(subjects, testing::ElementsAre("backend.platform.created", "backend.platform.config.updated"))
      << "the one apply is the only event besides those of health";
  EXPECT_EQ(a.stop(), 0);
}

}  // namespace
}  // namespace driftd::test
