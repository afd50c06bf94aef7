// SPDX-License-Identifier: Apache-2.0
// A server that asks to be left alone, and one that says nothing any more.
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

/// A port that takes connections and says nothing.
struct Mute {
  int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  int port = 0;
  Mute() {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    if (::bind(listener, reinterpret_cast<sockaddr*>(&address), size) != 0 || ::listen(listener, 64) != 0 ||
        ::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
      throw std::runtime_error("no port");
    }
    port = ntohs(address.sin_port);
  }
  ~Mute() { ::close(listener); }
};

/// The API server refuses those who list or watch Secrets as an account of `space`: they share a priority level without
/// seats with one whose request hangs in admission. Its Retry-After grows with what it has to refuse.
struct K8sThrottled : Cluster {
  static constexpr const char* kFlow = "/apis/flowcontrol.apiserver.k8s.io/v1/";
  const std::string space = fresh_namespace();
  TempDir dir;
  Mute mute;
  std::atomic<bool> done{false};
  std::thread hog;

  ~K8sThrottled() override {
    done = true;
    if (hog.joinable()) hog.join();
  }
  static json rule(const std::string& resource, json verbs) {
    return {{"apiGroups", {""}}, {"resources", {resource}}, {"verbs", std::move(verbs)}};
  }
  json as(const std::string& account) const {
    const json read = {"get", "list", "watch"};
    const std::string token =
        kube().account(space, account, json::array({rule("secrets", read), rule("configmaps", read)}));
    return with(kube().settings({space}),
                {{"include", {"secret", "config_map"}}, {"token_file", dir.write(account, token)}});
  }
  std::string level() const { return "none-" + space; }
  std::string schema(const std::string& account) const { return account + "-" + space; }
  void close_for(const std::string& account, const std::string& resource = "secrets",
                 json verbs = {"list", "watch"}) const {
    const json subject = {{"kind", "ServiceAccount"}, {"serviceAccount", {{"name", account}, {"namespace", space}}}};
    json of = rule(resource, std::move(verbs));
    of["namespaces"] = {"*"};
    kube().create(
        std::string(kFlow) + "flowschemas",
        {{"metadata", {{"name", schema(account)}}},
         {"spec",
          {{"priorityLevelConfiguration", {{"name", level()}}},
           {"matchingPrecedence", 100},
           {"distinguisherMethod", {{"type", "ByUser"}}},
           {"rules", json::array({{{"subjects", json::array({subject})}, {"resourceRules", json::array({of})}}})}}}});
  }
  void open_for(const std::string& account) const {
    kube().remove(std::string(kFlow) + "flowschemas/" + schema(account));
  }
  void occupy() {
    const json limited = {{"nominalConcurrencyShares", 0},
                          {"lendablePercent", 0},
                          {"borrowingLimitPercent", 0},
                          {"limitResponse", {{"type", "Reject"}}}};
    kube().create(std::string(kFlow) + "prioritylevelconfigurations",
                  {{"metadata", {{"name", level()}}}, {"spec", {{"type", "Limited"}, {"limited", limited}}}});
    const json where = {{"matchLabels", {{"kubernetes.io/metadata.name", space}}}};
    const json what = {
        {"apiGroups", {""}}, {"apiVersions", {"v1"}}, {"operations", {"CREATE"}}, {"resources", {"podtemplates"}}};
    const json hook = {{"name", "mute.driftd.test"},
                       {"clientConfig", {{"url", "https://127.0.0.1:" + std::to_string(mute.port) + "/"}}},
                       {"rules", json::array({what})},
                       {"namespaceSelector", where},
                       {"sideEffects", "None"},
                       {"timeoutSeconds", 30},
                       {"admissionReviewVersions", {"v1"}}};
    kube().create("/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
                  {{"metadata", {{"name", level()}}}, {"webhooks", json::array({hook})}});
    const std::string token = kube().account(space, "hog", json::array({rule("podtemplates", {"create"})}));
    close_for("hog", "podtemplates", {"create"});
    hog = std::thread([this, token] {
      const json pod = {{"spec", {{"containers", json::array({{{"name", "x"}, {"image", "x"}}})}}}};
      const json thing = {{"metadata", {{"generateName", "hog-"}}}, {"template", pod}};
      while (!done) kube().request_as(token, "POST", "/api/v1/namespaces/" + space + "/podtemplates", thing.dump());
    });
  }
  int refused(const std::string& account) const {
    return kube().counted("apiserver_flowcontrol_rejected_requests_total", {"flow_schema=\"" + schema(account) + "\""});
  }
  /// Asks until the server wants to be left alone for `wanted`.
  static void press(const json& settings, milliseconds wanted) {
    std::string last;
    const auto so_long = [&] {
      ProviderProbe impatient = probe(settings);
      const Collected got = impatient.refresh();
      last = shown(got);
      const auto* told = got.diagnostic(DRIFTD_THROTTLED);
      return told != nullptr && told->retry_after_ms >= wanted.count();
    };
    ASSERT_TRUE(eventually(so_long, seconds(60))) << "the server never asked for " << wanted.count() << " ms: " << last;
  }
};

TEST_F(K8sThrottled, ARefreshNamesTheTimeLetsOtherKindsGoOnAndAsksNoSoonerAgain) {
  const json flood = as("flood"), ours = as("ours");
  ProviderProbe k8s = probe(ours);
  ASSERT_EQ(k8s.refresh().complete.size(), 2u);
  occupy();
  close_for("flood");
  close_for("ours");
  ASSERT_NO_FATAL_FAILURE(press(flood, seconds(4)));
  // before the server said how long: all that ended before `began` + `wanted` came too soon
  const auto began = Clock::now();
  const Collected first = k8s.refresh();
  ASSERT_NE(first.diagnostic(DRIFTD_THROTTLED), nullptr) << shown(first);
  EXPECT_EQ(first.diagnostic(DRIFTD_THROTTLED)->kind, "secret");
  const milliseconds wanted(first.diagnostic(DRIFTD_THROTTLED)->retry_after_ms);
  EXPECT_GE(wanted, seconds(2));
  EXPECT_EQ(first.complete.count("config_map"), 1u);
  EXPECT_EQ(first.complete.count("secret"), 0u);
  const int asked = refused("ours");
  EXPECT_EQ(asked, 1);
  open_for("ours");
  int judged = 0;
  Collected last;
  for (Collected next = k8s.refresh(); Clock::now() - began < wanted; next = k8s.refresh(), ++judged) {
    ASSERT_NE(next.diagnostic(DRIFTD_THROTTLED), nullptr) << "it would be let in now, and does not try";
    last = std::move(next);
  }
  ASSERT_GT(judged, 0) << "no refresh ended in time";
  EXPECT_LT(last.diagnostic(DRIFTD_THROTTLED)->retry_after_ms, wanted.count());
  EXPECT_EQ(refused("ours"), asked);
  EXPECT_TRUE(eventually([&] { return k8s.refresh().complete.size() == 2u; }));
}

TEST_F(K8sThrottled, AWatchWaitsAsLongAsItIsAskedTo) {
  const json flood = as("flood"), ours = as("ours");
  ProviderProbe k8s = probe(ours);
  ASSERT_EQ(k8s.refresh().complete.size(), 2u);  // where the watch begins
  occupy();
  close_for("flood");
  close_for("ours");
  ASSERT_NO_FATAL_FAILURE(press(flood, seconds(4)));
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
                EXPECT_EQ(refused("ours"), 1) << "the watch of Secrets";
                open_for("ours");
                kube().create_secret(space, "late", {{"a", "b"}});
              },
              seen("secret", "late")}});
  ASSERT_NE(got.diagnostic(DRIFTD_THROTTLED), nullptr) << shown(got);
  const milliseconds wanted(got.diagnostic(DRIFTD_THROTTLED)->retry_after_ms);
  EXPECT_GE(wanted, seconds(2));
  EXPECT_GE(came - began, wanted) << "it came back sooner than it was asked to";
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
  ASSERT_FALSE(k8s.health().health.system_identity.empty());  // as the host begins: a client is kept for one cluster
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
  EXPECT_EQ(got.records.size(), 2u) << "none missed, none twice";
  EXPECT_GT(relay.connections(), connections) << "HTTP/2 would have gone on over the dead one";
  const Collected again = k8s.refresh();  // its own connection is as dead
  EXPECT_EQ(again.status, DRIFTD_UNAVAILABLE) << shown(again);
  EXPECT_EQ(k8s.refresh_ok().complete.at("secret"), 2u);
}

}  // namespace
}  // namespace driftd::test
