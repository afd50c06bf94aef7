// SPDX-License-Identifier: Apache-2.0
// Who asks and who answers: credentials of all forms, and another cluster behind the same endpoint.
#include "cluster.hpp"

namespace driftd::test {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

struct K8sAccess : Cluster {
  static json only_secrets(const std::string& space) {
    return with(kube().settings({space}), {{"include", {"secret"}}});
  }
  /// As an exec plugin of kubectl prints it.
  static std::string exec_credential(const json& status) {
    return json{{"kind", "ExecCredential"},
                {"apiVersion", "client.authentication.k8s.io/v1"},
                {"spec", json::object()},
                {"status", status}}
        .dump();
  }
  static ProviderProbe probe_with(json settings, const std::string& credential) {
    settings.erase("token_file");
    settings["token"] = "ref";
    return ProviderProbe("providers/k8s.so", settings, {{"ref", credential}});
  }
};

TEST_F(K8sAccess, AnExecCredentialWithATokenIsWhoAsks) {
  const std::string space = fresh_namespace();
  ProviderProbe k8s =
      probe_with(only_secrets(space),
                 exec_credential({{"token", kube().admin_token()}, {"expirationTimestamp", "2999-01-01T00:00:00Z"}}));
  const Collected got = k8s.refresh();
  EXPECT_EQ(got.status, DRIFTD_OK) << shown(got);
  EXPECT_EQ(k8s.health().health.state, DRIFTD_HEALTH_UP);
}

TEST_F(K8sAccess, AnExecCredentialWithACertificateIsWhoAsks) {
  const std::string space = fresh_namespace();
  const json status = {{"clientCertificateData", read_file(kube().file("client.pem"))},
                       {"clientKeyData", read_file(kube().file("client.key"))}};
  const Collected got = probe_with(only_secrets(space), exec_credential(status)).refresh();
  ASSERT_NE(got.diagnostic(DRIFTD_DENIED), nullptr) << shown(got);
  EXPECT_THAT(got.diagnostic(DRIFTD_DENIED)->text, HasSubstr("\"certified\"")) << "the server knows who it is";
}

TEST_F(K8sAccess, AnExecCredentialThatExpiredOrIsNoneIsNotUsedAndNotShown) {
  const std::string space = fresh_namespace();
  for (const auto& [text, says] :
       {std::pair{exec_credential({{"token", "canary"}, {"expirationTimestamp", "2020-01-01T00:00:00Z"}}),
                  "expired at 2020-01-01T00:00:00Z"},
        {exec_credential({{"token", nullptr}, {"canary", "canary"}}), "neither a token nor"}}) {
    ProviderProbe k8s = probe_with(only_secrets(space), text);
    const Collected got = k8s.refresh();
    EXPECT_EQ(got.status, DRIFTD_UNAUTHENTICATED);
    EXPECT_THAT(got.records, IsEmpty());
    EXPECT_THAT(shown(got), HasSubstr(says));
    EXPECT_THAT(shown(got) + k8s.health().health.reason, Not(HasSubstr("canary")));
    EXPECT_EQ(k8s.health().health.state, DRIFTD_HEALTH_DEGRADED);
  }
}

/// A second cluster whose versions are higher than the first one's, and a relay that leads to the one or the other.
struct K8sAnotherCluster : K8sAccess {
  KubeServer other;
  Relay relay{kube().port()};
  TempDir dir;
  const std::string space = fresh_namespace();

  static long version(const KubeServer& of) {
    return std::stol(text(of.get("/api/v1/secrets?limit=1"), "resourceVersion"));
  }
  json through_relay() const {
    const std::string cas = dir.write("ca.pem", read_file(kube().ca_file()) + read_file(other.ca_file()));
    return with(only_secrets(space),
                {{"server", "https://127.0.0.1:" + std::to_string(relay.port())}, {"tls", {{"ca_file", cas}}}});
  }
  K8sAnotherCluster() {
    kube().create_secret(space, "here", {{"a", "b"}});
    other.create_namespace(space);
    for (int i = 0; version(other) < version(kube()) + 10; ++i)
      other.create_secret(space, "there-" + std::to_string(i), {{"a", "b"}});
  }
  void move() {
    const int before = relay.cuts();
    relay.point_to(other.port());
    relay.cut_now();
    eventually([&] { return relay.cuts() > before; });
  }
};

TEST_F(K8sAnotherCluster, IsNotReadUnderTheIdentityOfTheFirstBeforeTheHostKnows) {
  ProviderProbe k8s = probe(through_relay());
  const std::string first = k8s.health().health.system_identity;
  ASSERT_EQ(k8s.refresh().complete.at("secret"), 1u);
  EXPECT_EQ(k8s.health().health.system_identity, first) << "the host asks, and goes on";
  move();
  const auto refused = [&] {
    const Collected got = k8s.refresh();
    EXPECT_EQ(got.status, DRIFTD_UNAVAILABLE) << shown(got);
    EXPECT_THAT(got.records, IsEmpty());
    EXPECT_THAT(got.complete, IsEmpty());
    return shown(got).find("another cluster answers") != std::string::npos;  // the first may only see the cut
  };
  EXPECT_TRUE(eventually(refused));
  const Collected read = k8s.read({{"secret", space + "/here"}});
  EXPECT_EQ(read.status, DRIFTD_UNAVAILABLE) << shown(read);
  EXPECT_EQ(read.diagnostic(DRIFTD_NOT_FOUND), nullptr) << "it stands where it was";
  EXPECT_EQ(k8s.discover().status, DRIFTD_UNAVAILABLE);

  EXPECT_NE(k8s.health().health.system_identity, first);
  const Collected agreed = k8s.refresh();  // the host was told and still asks
  EXPECT_EQ(agreed.status, DRIFTD_OK) << shown(agreed);
  EXPECT_EQ(agreed.find("secret", space + "/here"), nullptr);
  EXPECT_NE(agreed.find("secret", space + "/there-0"), nullptr);
}

TEST_F(K8sAnotherCluster, IsNotWatchedUnderTheIdentityOfTheFirst) {
  ProviderProbe k8s = probe(through_relay());
  k8s.health();
  ASSERT_EQ(k8s.refresh().status, DRIFTD_OK);
  bool moved = false;
  const Collected got = k8s.watch(
      "", [](const Collected&) { return false; }, std::chrono::seconds(30),
      [&] {
        if (!std::exchange(moved, true)) move();
      });
  ASSERT_TRUE(moved);
  EXPECT_EQ(got.status, DRIFTD_UNAVAILABLE) << shown(got);
  EXPECT_THAT(shown(got), HasSubstr("another cluster answers"));
  EXPECT_THAT(got.records, IsEmpty()) << got.records.front().id;
}

}  // namespace
}  // namespace driftd::test
