// SPDX-License-Identifier: Apache-2.0
// A server that answers 429 with a Retry-After, and one that stops answering on an open connection.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>
#include <atomic>
#include <thread>

#include "cluster.hpp"

namespace driftd::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Clock = std::chrono::steady_clock;

/// A port that accepts connections and never answers.
struct SilentPort {
  int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  int port = 0;
  SilentPort() {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    if (::bind(listener, reinterpret_cast<sockaddr*>(&address), size) != 0 || ::listen(listener, 64) != 0 ||
        ::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
      throw std::runtime_error("no free port");
    }
    port = ntohs(address.sin_port);
  }
  ~SilentPort() { ::close(listener); }
};

/// The API server refuses requests for Secrets of the accounts for which close_for() was called. They share a priority
/// level without seats with the account `hog`, whose request hangs in an admission webhook that never answers
/// (API Priority and Fairness). The Retry-After of the server grows with the number of requests that it refuses.
struct K8sThrottled : Cluster {
  static constexpr const char* kFlow = "/apis/flowcontrol.apiserver.k8s.io/v1/";
  const std::string space = fresh_namespace();
  TempDir dir;
  SilentPort webhook;
  std::atomic<bool> done{false};
  std::thread hog;

  ~K8sThrottled() override {
    done = true;
    if (hog.joinable()) hog.join();
  }
  static json rule(const std::string& resource, json verbs) {
    return {{"apiGroups", {""}}, {"resources", {resource}}, {"verbs", std::move(verbs)}};
  }
  /// Settings of a provider that reads Secrets and ConfigMaps as this account, which is created.
  json settings_as(const std::string& account) const {
    const json read = {"get", "list", "watch"};
    const std::string token =
        kube().account(space, account, json::array({rule("secrets", read), rule("configmaps", read)}));
    return with(kube().settings({space}),
                {{"include", {"secret", "config_map"}}, {"token_file", dir.write(account, token)}});
  }
  std::string priority_level() const { return "none-" + space; }
  std::string flow_schema(const std::string& account) const { return account + "-" + space; }
  /// Sends the account's requests to the priority level that is occupied.
  void close_for(const std::string& account, const std::string& resource = "secrets",
                 json verbs = {"list", "watch"}) const {
    const json subject = {{"kind", "ServiceAccount"}, {"serviceAccount", {{"name", account}, {"namespace", space}}}};
    json requests = rule(resource, std::move(verbs));
    requests["namespaces"] = {"*"};
    kube().create(
        std::string(kFlow) + "flowschemas",
        {{"metadata", {{"name", flow_schema(account)}}},
         {"spec",
          {{"priorityLevelConfiguration", {{"name", priority_level()}}},
           {"matchingPrecedence", 100},
           {"distinguisherMethod", {{"type", "ByUser"}}},
           {"rules",
            json::array({{{"subjects", json::array({subject})}, {"resourceRules", json::array({requests})}}})}}}});
  }
  void open_for(const std::string& account) const {
    kube().remove(std::string(kFlow) + "flowschemas/" + flow_schema(account));
  }
  /// Creates the priority level and lets `hog` occupy it until the end of the test.
  void occupy() {
    const json limited = {{"nominalConcurrencyShares", 0},
                          {"lendablePercent", 0},
                          {"borrowingLimitPercent", 0},
                          {"limitResponse", {{"type", "Reject"}}}};
    kube().create(std::string(kFlow) + "prioritylevelconfigurations",
                  {{"metadata", {{"name", priority_level()}}}, {"spec", {{"type", "Limited"}, {"limited", limited}}}});
    const json where = {{"matchLabels", {{"kubernetes.io/metadata.name", space}}}};
    const json what = {
        {"apiGroups", {""}}, {"apiVersions", {"v1"}}, {"operations", {"CREATE"}}, {"resources", {"podtemplates"}}};
    const json hook = {{"name", "mute.driftd.test"},
                       {"clientConfig", {{"url", "https://127.0.0.1:" + std::to_string(webhook.port) + "/"}}},
                       {"rules", json::array({what})},
                       {"namespaceSelector", where},
                       {"sideEffects", "None"},
                       {"timeoutSeconds", 30},
                       {"admissionReviewVersions", {"v1"}}};
    kube().create("/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
                  {{"metadata", {{"name", priority_level()}}}, {"webhooks", json::array({hook})}});
    const std::string token = kube().account(space, "hog", json::array({rule("podtemplates", {"create"})}));
    close_for("hog", "podtemplates", {"create"});
    hog = std::thread([this, token] {
      const json pod = {{"spec", {{"containers", json::array({{{"name", "x"}, {"image", "x"}}})}}}};
      const json thing = {{"metadata", {{"generateName", "hog-"}}}, {"template", pod}};
      while (!done) kube().request_as(token, "POST", "/api/v1/namespaces/" + space + "/podtemplates", thing.dump());
    });
  }
  /// How many requests of the account the server has refused.
  int refused(const std::string& account) const {
    return kube().counted("apiserver_flowcontrol_rejected_requests_total",
                          {"flow_schema=\"" + flow_schema(account) + "\""});
  }
  /// Sends requests until the server's Retry-After is at least `wanted`.
  static void raise_retry_after(const json& settings, milliseconds wanted) {
    std::string last;
    const auto long_enough = [&] {
      ProviderProbe impatient = probe(settings);
      const Collected got = impatient.refresh();
      last = render(got);
      const auto* throttled = got.diagnostic(DRIFTD_THROTTLED);
      return throttled != nullptr && throttled->retry_after_ms >= wanted.count();
    };
    ASSERT_TRUE(eventually(long_enough, seconds(60)))
        << "the server never asked for " << wanted.count() << " ms: " << last;
  }
};

TEST_F(K8sThrottled, ARefreshNamesTheTimeLetsOtherKindsGoOnAndAsksNoSoonerAgain) {
  const json flood = settings_as("flood"), ours = settings_as("ours");
  ProviderProbe k8s = probe(ours);
  ASSERT_EQ(k8s.refresh().complete.size(), 2u);
  occupy();
  close_for("flood");
  close_for("ours");
  ASSERT_NO_FATAL_FAILURE(raise_retry_after(flood, seconds(4)));
  // taken before the server names the time, so every refresh that ends before `began` + `wanted` is within that time
  const auto began = Clock::now();
  const Collected first = k8s.refresh();
  ASSERT_NE(first.diagnostic(DRIFTD_THROTTLED), nullptr) << render(first);
  EXPECT_EQ(first.diagnostic(DRIFTD_THROTTLED)->kind, "secret");
  const milliseconds wanted(first.diagnostic(DRIFTD_THROTTLED)->retry_after_ms);
  EXPECT_GE(wanted, seconds(2));
  EXPECT_EQ(first.complete.count("config_map"), 1u);
  EXPECT_EQ(first.complete.count("secret"), 0u);
  const int asked = refused("ours");
  EXPECT_EQ(asked, 1);
  open_for("ours");
  int refreshes_in_time = 0;
  Collected last;
  for (Collected next = k8s.refresh(); Clock::now() - began < wanted; next = k8s.refresh(), ++refreshes_in_time) {
    ASSERT_NE(next.diagnostic(DRIFTD_THROTTLED), nullptr) << "the server would answer now, but must not be asked yet";
    last = std::move(next);
  }
  ASSERT_GT(refreshes_in_time, 0) << "no refresh ended before the server could be asked again";
  EXPECT_LT(last.diagnostic(DRIFTD_THROTTLED)->retry_after_ms, wanted.count());
  EXPECT_EQ(refused("ours"), asked);
  EXPECT_TRUE(eventually([&] { return k8s.refresh().complete.size() == 2u; }));
}

TEST_F(K8sThrottled, AWatchWaitsAsLongAsItIsAskedTo) {
  const json flood = settings_as("flood"), ours = settings_as("ours");
  ProviderProbe k8s = probe(ours);
  ASSERT_EQ(k8s.refresh().complete.size(), 2u);  // where the watch begins
  occupy();
  close_for("flood");
  close_for("ours");
  ASSERT_NO_FATAL_FAILURE(raise_retry_after(flood, seconds(4)));
  const auto began = Clock::now();
  Clock::time_point came;
  const auto seen = [&](const std::string& kind, const std::string& name) {
    return [&, kind, name](const Collected& got) {
      came = Clock::now();
      return got.find(kind, space + "/" + name) != nullptr;
    };
  };
  const Collected got =
      watch(k8s, "",
            {{[&] {
                kube().create("/api/v1/namespaces/" + space + "/configmaps", {{"metadata", {{"name", "tick"}}}});
              },
              seen("config_map", "tick")},
             {[&] {
                EXPECT_EQ(refused("ours"), 1) << "only the watch of Secrets was refused";
                open_for("ours");
                kube().create_secret(space, "late", {{"a", "b"}});
              },
              seen("secret", "late")}});
  ASSERT_NE(got.diagnostic(DRIFTD_THROTTLED), nullptr) << render(got);
  const milliseconds wanted(got.diagnostic(DRIFTD_THROTTLED)->retry_after_ms);
  EXPECT_GE(wanted, seconds(2));
  EXPECT_GE(came - began, wanted) << "the watch asked again sooner than the server wanted";
}

using K8sSilence = Cluster;

TEST_F(K8sSilence, AWatchThatSaysNothingAnyMoreIsMadeAnewAndMissesNothing) {
  const std::string space = fresh_namespace();
  Relay relay(kube().port());
  ProviderProbe k8s =
      probe(with(kube().settings({space}), {{"include", {"secret", "config_map"}},
                                            {"server", "https://127.0.0.1:" + std::to_string(relay.port())},
                                            {"call_timeout_ms", 1500},
                                            {"watch_silence_ms", 3000}}));
  ASSERT_FALSE(k8s.health().health.system_identity.empty());  // the host begins with health, too
  k8s.refresh_ok();
  const auto seen = [&](const std::string& name) {
    return [&, name](const Collected& got) { return got.find("secret", space + "/" + name) != nullptr; };
  };
  int connections = 0;
  const Collected got = watch(k8s, "",
                              {{[&] {
                                  kube().create_secret(space, "before", {{"a", "b"}});
                                },
                                seen("before")},
                               {[&] {
                                  connections = relay.connections();
                                  relay.mute_now();
                                  kube().create_secret(space, "unheard", {{"a", "b"}});
                                },
                                seen("unheard")}},
                              seconds(30));
  EXPECT_EQ(got.records.size(), 2u) << "no change may be missed or come twice";
  EXPECT_GT(relay.connections(), connections) << "the watch must not go on over the connection that is silent";
  const Collected again = k8s.refresh();  // the refresh's own connection is silent, too
  EXPECT_EQ(again.status, DRIFTD_UNAVAILABLE) << render(again);
  EXPECT_EQ(k8s.refresh_ok().complete.at("secret"), 2u);
}

}  // namespace
}  // namespace driftd::test
