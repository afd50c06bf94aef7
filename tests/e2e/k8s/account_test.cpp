// SPDX-License-Identifier: Apache-2.0
// The credentials that pods and people use, read in the worker's jail; and another cluster behind the same endpoint.
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "line.hpp"
#include "support/stream_events.hpp"

namespace driftd::test {
namespace {

using nlohmann::json;
using std::chrono::seconds;
namespace fs = std::filesystem;

struct K8sAccount : K8sLine {
  const std::string account = dir.file("serviceaccount");

  K8sAccount() {
    kube.create_secret("prod", "db", {{"password", "canary-before"}});
    for (const char* each : {"bound-a", "bound-b"}) kube.create_secret("prod", each, {{"a", "b"}});
    const json rule = {
        {"apiGroups", {""}}, {"resources", {"secrets", "configmaps", "services"}}, {"verbs", {"get", "list", "watch"}}};
    kube.account("prod", "driftd", json::array({rule}));
  }
  /// Projects a token as the kubelet does: a folder for each version, and a link that is renamed onto the former one.
  void project(const std::string& version, const std::string& token) const {
    const fs::path folder = fs::path(account) / ("..version_" + version);
    fs::create_directories(folder);
    std::ofstream(folder / "token") << token;
    fs::copy_file(kube.ca_file(), folder / "ca.crt");
    const fs::path link = fs::path(account) / "..data", fresh = fs::path(account) / "..data_tmp";
    const std::string before = fs::exists(link) ? fs::read_symlink(link).string() : "";
    fs::create_symlink("..version_" + version, fresh);
    fs::rename(fresh, link);
    if (!before.empty()) fs::remove_all(fs::path(account) / before);
    for (const char* each : {"token", "ca.crt"}) {
      if (!fs::exists(fs::symlink_status(fs::path(account) / each)))
        fs::create_symlink(fs::path("..data") / each, fs::path(account) / each);
    }
  }
  /// Expects that no token left the worker: neither its payload nor its signature is in the log, the answers of the
  /// API, the published events or the files of the store. Stops the agent.
  void expect_nowhere(Agent& a, const std::vector<std::string>& tokens) const {
    std::string everything = a.log();
    for (const auto& words : std::vector<std::vector<std::string>>{{"status"},
                                                                   {"backends"},
                                                                   {"drifts", "--all", "--whole"},
                                                                   {"resources", "--bodies", "--whole"},
                                                                   {"events", "--limit", "1000"},
                                                                   {"audit"}}) {
      for (const char* form : {"table", "json"}) {
        auto line = words;
        line.insert(line.end(), {"-o", form});
        const Output answer = a.cli(line);
        EXPECT_FALSE(answer.out.empty()) << words[0] << ": " << answer.err;
        everything += answer.out + answer.err;
      }
    }
    std::size_t published = 0;
    for (const auto& message : stream_contents(nats.url(), "DRIFT")) {
      ++published;
      everything += message.body;
    }
    EXPECT_GT(published, 0u);
    EXPECT_EQ(a.stop(), 0);
    for (const auto& each : fs::recursive_directory_iterator(a.data_dir())) {
      if (each.is_regular_file()) everything += read_file(each.path().string());
    }
    for (const auto& token : tokens) {
      const auto payload = token.find('.') + 1, signature = token.rfind('.') + 1;
      ASSERT_LT(payload, signature) << "not a JWT";
      for (const std::string& part : {token.substr(payload, 40), token.substr(signature, 40)})
        EXPECT_EQ(everything.find(part), std::string::npos) << "the token left the worker";
    }
  }
  /// Waits until `count` rotations of the Secret `db` were published.
  testing::AssertionResult rotations_arrive(long count) const {
    return arrives(
        nats, {"cluster", "secret/prod/db", "credentials.rotated", "auto-applied", "changed", "data.password"}, count);
  }
};

TEST_F(K8sAccount, AProjectedTokenThatIsReplacedWhileTheWatchRunsIsTheOneToAskWith) {
  const std::string first = kube.token_of("prod", "driftd", "bound-a"),
                    second = kube.token_of("prod", "driftd", "bound-b");
  project("1", first);
  Relay relay(kube.port());
  Agent a = agent(relay.port(), "service_account: \"" + account + "\"");
  ASSERT_NO_FATAL_FAILURE(begin(a));
  rotate("db", "canary-one");
  ASSERT_TRUE(rotations_arrive(1)) << a.log();
  project("2", second);
  kube.remove(secrets() + "/bound-a");
  ASSERT_TRUE(eventually([&] { return kube.request_as(first, "GET", secrets()).status == 401; }, seconds(60)))
      << "the API server still accepts the first token";
  relay.cut_now();  // the next watch must authenticate again
  rotate("db", "canary-two");
  EXPECT_TRUE(rotations_arrive(2)) << a.log();
  EXPECT_TRUE(eventually([&] { return a.backend("cluster")->at("health").value("state", "") == "up"; }))
      << a.backend("cluster")->dump();
  expect_nowhere(a, {first, second});
}

TEST_F(K8sAccount, TheAnswerOfAnExecPluginIsReadFromAFileAndStaysThere) {
  const std::string token = kube.token_of("prod", "driftd");
  const json answer = {{"kind", "ExecCredential"},
                       {"apiVersion", "client.authentication.k8s.io/v1"},
                       {"status", {{"token", token}, {"expirationTimestamp", "2999-01-01T00:00:00Z"}}}};
  const std::string file = dir.write("answer.json", answer.dump(2) + "\n");
  Agent a = agent(0, "tls: { ca_file: \"" + kube.ca_file() + "\" }, token: \"${file:" + file + "}\"");
  ASSERT_NO_FATAL_FAILURE(begin(a));
  rotate("db", "canary-one");
  EXPECT_TRUE(rotations_arrive(1)) << a.log();
  expect_nowhere(a, {token});
}

TEST_F(K8sLine, AnotherClusterBehindTheEndpointIsAskedAboutAndNothingOfItIsDrift) {
  KubeServer other;
  other.create_namespace("prod");
  for (int i = 0; i < 300; ++i) other.create_secret("prod", "there-" + std::to_string(i), {{"a", "b"}});
  for (int i = 0; i < 30; ++i) kube.create_secret("prod", "here-" + std::to_string(i), {{"a", "b"}});
  const std::string cas = dir.write("cas.pem", read_file(kube.ca_file()) + read_file(other.ca_file()));
  Relay relay(kube.port());
  Agent a = agent(relay.port(), "tls: { ca_file: \"" + cas + "\" }, token_file: \"" + kube.file("token") + "\"");
  ASSERT_NO_FATAL_FAILURE(begin(a));
  relay.point_to(other.port());
  relay.cut_now();
  EXPECT_TRUE(arrives(nats, {"cluster", "backend/cluster", "endpoint.changed", "pending", {}, {}})) << a.log();
  EXPECT_TRUE(eventually([&] { return a.backend("cluster")->value("state", "") == "held"; }))
      << a.backend("cluster")->dump();
  for (const auto& event : stream_events(nats))
    EXPECT_NE(event.resource_kind(), "secret") << event.resource_id() << " " << event.operation();
}

}  // namespace
}  // namespace driftd::test
