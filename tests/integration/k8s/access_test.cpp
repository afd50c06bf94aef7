// SPDX-License-Identifier: Apache-2.0
// Who asks and who answers: credentials in the form of kubectl's exec plugins, and another cluster that comes to stand
// behind the same endpoint.
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
  /// An ExecCredential, as an exec plugin of kubectl prints it.
  static std::string exec_credential(const json& status) {
    return json{{"kind", "ExecCredential"},
                {"apiVersion", "client.authentication.k8s.io/v1"},
                {"spec", json::object()},
                {"status", status}}
        .dump();
  }
  /// A provider whose token is this text.
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
  EXPECT_EQ(got.status, DRIFTD_OK) << render(got);
  EXPECT_EQ(k8s.health().health.state, DRIFTD_HEALTH_UP);
}

TEST_F(K8sAccess, AnExecCredentialWithACertificateIsWhoAsks) {
  const std::string space = fresh_namespace();
  const json status = {{"clientCertificateData", read_file(kube().file("client.pem"))},
                       {"clientKeyData", read_file(kube().file("client.key"))}};
  const Collected got = probe_with(only_secrets(space), exec_credential(status)).refresh();
  ASSERT_NE(got.diagnostic(DRIFTD_DENIED), nullptr) << render(got);
  EXPECT_THAT(got.diagnostic(DRIFTD_DENIED)->text, HasSubstr("\"certified\""))
      << "the server must name the user of the certificate";
}

TEST_F(K8sAccess, AnExecCredentialThatExpiredOrIsNoneIsNotUsedAndNotShown) {
  const std::string space = fresh_namespace();
  for (const auto& [credential, reason] :
       {std::pair{exec_credential({{"token", "canary"}, {"expirationTimestamp", "2020-01-01T00:00:00Z"}}),
                  "expired at 2020-01-01T00:00:00Z"},
        {exec_credential({{"token", nullptr}, {"canary", "canary"}}), "neither a token nor"}}) {
    ProviderProbe k8s = probe_with(only_secrets(space), credential);
    const Collected got = k8s.refresh();
    EXPECT_EQ(got.status, DRIFTD_UNAUTHENTICATED);
    EXPECT_THAT(got.records, IsEmpty());
    EXPECT_THAT(render(got), HasSubstr(reason));
    EXPECT_THAT(render(got) + k8s.health().health.reason, Not(HasSubstr("canary")));
    EXPECT_EQ(k8s.health().health.state, DRIFTD_HEALTH_DEGRADED);
  }
}

/// A second cluster whose resourceVersions are higher than those of the first, and a relay that leads to one of the
/// two.
/// The list of Secrets leaves out Helm's by their type, so what only looks like one of them must be named.
TEST_F(K8sAccess, ASecretOfHelmsTypeThatIsNoReleaseIsNamed) {
  const std::string space = fresh_namespace();
  kube().create(secrets(space), {{"metadata", {{"name", "hidden"}}}, {"type", "helm.sh/release.v1"}});
  ProviderProbe k8s = probe(with(kube().settings({space}), {{"include", {"secret", "helm_release"}}}));
  const Collected got = k8s.refresh();
  ASSERT_EQ(got.status, DRIFTD_OK) << render(got);
  ASSERT_FALSE(got.diagnostics.empty());
  EXPECT_EQ(got.diagnostics[0].kind, "helm_release");
  EXPECT_THAT(got.diagnostics[0].text, HasSubstr(space + "/hidden has the type of a Helm release"));
}

struct K8sAnotherCluster : K8sAccess {
  KubeServer other;
  Relay relay{kube().port()};
  TempDir dir;
  const std::string space = fresh_namespace();

  static long version(const KubeServer& server) {
    return std::stol(text(server.get("/api/v1/secrets?limit=1"), "resourceVersion"));
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
  /// From now on the endpoint leads to the other cluster, and the connections to the first are cut.
  void move() {
    const int before = relay.cuts();
    relay.point_to(other.port());
    relay.cut_now();
    EXPECT_TRUE(eventually([&] { return relay.cuts() > before; }));
  }
};

TEST_F(K8sAnotherCluster, IsNotReadUnderTheIdentityOfTheFirstBeforeTheHostKnows) {
  ProviderProbe k8s = probe(through_relay());
  const std::string first = k8s.health().health.system_identity;
  ASSERT_EQ(k8s.refresh().complete.at("secret"), 1u);
  EXPECT_EQ(k8s.health().health.system_identity, first) << "health still tells the identity of the first";
  move();
  const auto refused = [&] {
    const Collected got = k8s.refresh();
    EXPECT_EQ(got.status, DRIFTD_UNAVAILABLE) << render(got);
    EXPECT_THAT(got.records, IsEmpty());
    EXPECT_THAT(got.complete, IsEmpty());
    return render(got).find("another cluster answers") != std::string::npos;  // the first try may only see the cut
  };
  EXPECT_TRUE(eventually(refused));
  const Collected read = k8s.read({{"secret", space + "/here"}});
  EXPECT_EQ(read.status, DRIFTD_UNAVAILABLE) << render(read);
  EXPECT_EQ(read.diagnostic(DRIFTD_NOT_FOUND), nullptr) << "a Secret of the first cluster is not gone";
  EXPECT_EQ(k8s.discover().status, DRIFTD_UNAVAILABLE);

  EXPECT_NE(k8s.health().health.system_identity, first);
  // health has told the host of the other identity: a host that asks for a refresh now accepts it
  const Collected accepted = k8s.refresh();
  EXPECT_EQ(accepted.status, DRIFTD_OK) << render(accepted);
  EXPECT_EQ(accepted.find("secret", space + "/here"), nullptr);
  EXPECT_NE(accepted.find("secret", space + "/there-0"), nullptr);
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
  EXPECT_EQ(got.status, DRIFTD_UNAVAILABLE) << render(got);
  EXPECT_THAT(render(got), HasSubstr("another cluster answers"));
  EXPECT_THAT(got.records, IsEmpty()) << got.records.front().id;
}

}  // namespace
}  // namespace driftd::test
