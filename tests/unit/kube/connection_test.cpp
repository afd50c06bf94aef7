// SPDX-License-Identifier: Apache-2.0
// Where a connection comes from, and what a type of the API server is called.
#include <gmock/gmock.h>

#include "driftd/sdk/types.hpp"
#include "kube/connection.hpp"
#include "kube/resource.hpp"

namespace driftd::kube {
namespace {

using ::testing::HasSubstr;

std::string kubeconfig(const std::string& cluster, const std::string& user) {
  return "current-context: c\ncontexts: [{name: c, context: {cluster: k, user: u}}]\nclusters: [{name: k, cluster: {" +
         cluster + "}}]\nusers: [{name: u, user: {" + user + "}}]\n";
}

std::string failure_of(const std::string& yaml, const KubeconfigUse& use) {
  Connection connection;
  try {
    apply_kubeconfig(connection, yaml, use);
  } catch (const sdk::Failure& failure) {
    EXPECT_EQ(failure.code, DRIFTD_INVALID);
    return failure.what();
  }
  return "accepted";
}

TEST(KubeConnection, OfAPodIsItsServiceAccount) {
  Connection connection;
  use_service_account(connection, "/folder");
  EXPECT_EQ(connection.server, "https://kubernetes.default.svc");
  EXPECT_EQ(connection.tls.ca_file, "/folder/ca.crt");
  EXPECT_EQ(connection.identification.token_file, "/folder/token");
}

/// The text comes from a Secret: whoever wrote it must not choose which file of the operator is sent to which server.
TEST(KubeConnection, AKubeconfigThatMayNotNameFilesIsRefusedIfItDoes) {
  KubeconfigUse use{.folder = {}};
  use.files = false;
  use.where = "the Secret a/b";
  const std::string server = "server: 'https://x:1', ";
  EXPECT_EQ(failure_of(kubeconfig(server + "certificate-authority-data: QUJD", "token: t"), use), "accepted");
  EXPECT_EQ(failure_of(kubeconfig(server, "tokenFile: /var/run/token"), use),
            "the Secret a/b: tokenFile names a file, and this kubeconfig may not: put the content into it (token)");
  EXPECT_EQ(failure_of(kubeconfig(server + "certificate-authority: ca.pem", "token: t"), use),
            "the Secret a/b: certificate-authority names a file, and this kubeconfig may not: put the content into it "
            "(certificate-authority-data)");
  EXPECT_THAT(failure_of(kubeconfig(server, "client-certificate: c"), use), HasSubstr("(client-certificate-data)"));
  EXPECT_THAT(failure_of(kubeconfig(server, "client-key: /k"), use), HasSubstr("(client-key-data)"));
  use.files = true;
  EXPECT_EQ(failure_of(kubeconfig(server, "tokenFile: /var/run/token"), use), "accepted");
}

TEST(KubeResource, NamesItsPathsRightsAndVersion) {
  const Resource maps{"m", "/api/v1", "configmaps", "ConfigMap", true, {}, {}};
  const Resource backends{"b", "/apis/prism.io/v1alpha1", "prismbackends", "PrismBackend", false, {}, {}};
  EXPECT_EQ(maps.path("a b", "c"), "/api/v1/namespaces/a%20b/configmaps/c");
  EXPECT_EQ(maps.right("list", ""), "list configmaps in all namespaces");
  EXPECT_EQ(maps.api_version(), "v1");
  EXPECT_EQ(backends.path("", "x"), "/apis/prism.io/v1alpha1/prismbackends/x");
  EXPECT_EQ(backends.right("watch", ""), "watch prismbackends.prism.io");
  EXPECT_EQ(backends.api_version(), "prism.io/v1alpha1");
}

}  // namespace
}  // namespace driftd::kube
