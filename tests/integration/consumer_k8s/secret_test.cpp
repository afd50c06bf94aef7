// SPDX-License-Identifier: Apache-2.0
// `k8s:` references against a real API server, with the token of a service account.
#include <gtest/gtest.h>

#include "driftd/consumer/credentials.hpp"
#include "support/kube.hpp"

namespace driftd::test {
namespace {

using consumer::Code;
using consumer::CredentialReference;
using nlohmann::json;
using std::chrono::milliseconds;

class ConsumerSecrets : public testing::Test {
 protected:
  ConsumerSecrets() {
    kube_.create_namespace("shop");
    kube_.create_secret("shop", "cache", {{"username", "app"}, {"redis-password", "s3cret"}, {"empty", ""}});
    kube_.create_secret("shop", "other", {{"password", "not for you"}});
    const json rule = {
        {"apiGroups", {""}}, {"resources", {"secrets"}}, {"resourceNames", {"cache", "gone"}}, {"verbs", {"get"}}};
    access_.server = kube_.server();
    access_.ca_file = kube_.ca_file();
    access_.token_file = dir_.write("token", kube_.account("shop", "order-consumer", json::array({rule})) + "\n");
  }
  consumer::Result<std::map<std::string, consumer::Secret>> resolve(
      const std::map<std::string, std::string>& references, milliseconds max_time = milliseconds(20'000)) const {
    consumer::Resolvers resolvers;
    resolvers.set(CredentialReference::Scheme::k8s, consumer::kube_resolver(access_));
    return resolvers.resolve(references, max_time);
  }
  std::string error(const std::string& reference, milliseconds max_time = milliseconds(20'000)) const {
    const auto values = resolve({{"password", reference}}, max_time);
    return values ? "no error" : values.error().message;
  }

  TempDir dir_;
  KubeServer kube_;
  consumer::KubeAccess access_;
};

TEST_F(ConsumerSecrets, AValueIsReadWithTheAccountsOwnRightAndAgainAfterItChanged) {
  const std::map<std::string, std::string> references = {{"username", "k8s:shop/cache#username"},
                                                         {"password", "k8s:shop/cache#redis-password"}};
  auto values = resolve(references);
  ASSERT_TRUE(values) << values.error().message;
  EXPECT_EQ(values->at("username").reveal(), "app");
  EXPECT_EQ(values->at("password").reveal(), "s3cret");
  kube_.patch("/api/v1/namespaces/shop/secrets/cache", {{"stringData", {{"redis-password", "rotated"}}}});
  values = resolve(references);
  ASSERT_TRUE(values);
  EXPECT_EQ(values->at("password").reveal(), "rotated");
}

TEST_F(ConsumerSecrets, WhatCannotBeReadSaysWhichReferenceAndWhatToDo) {
  const std::string server = kube_.server();
  EXPECT_EQ(error("k8s:shop/other#password"),
            "k8s:shop/other#password: " + server +
                " answered 403: the service account needs `get` on the Secret other in "
                "the namespace shop (Role and RoleBinding)");
  EXPECT_EQ(error("k8s:shop/gone#password"),
            "k8s:shop/gone#password: " + server + " answered 404: there is no such Secret");
  EXPECT_EQ(error("k8s:shop/cache#password"), "k8s:shop/cache#password: the Secret has no such key; it has 3");
  EXPECT_EQ(error("k8s:shop/cache#empty"), "k8s:shop/cache#empty: the value is empty");
  dir_.write("token", "not-a-token");
  EXPECT_EQ(error("k8s:shop/cache#username"),
            "k8s:shop/cache#username: " + server + " answered 401: it does not accept the service account's token");
  dir_.write("token", "a\r\nX-Remote-User: admin");
  EXPECT_EQ(error("k8s:shop/cache#username"),
            "k8s:shop/cache#username: " + access_.token_file + " does not hold a token");
}

TEST_F(ConsumerSecrets, AServerWithAnotherCertificateAuthorityGetsNoToken) {
  TempDir other;
  const auto made = run({"openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", other.file("key"),
                         "-out", other.file("ca.pem"), "-subj", "/CN=other", "-days", "1"});
  ASSERT_EQ(made.code, 0) << made.err;
  access_.ca_file = other.file("ca.pem");
  const auto values = resolve({{"password", "k8s:shop/cache#username"}});
  ASSERT_FALSE(values);
  EXPECT_EQ(values.error().code, Code::denied) << values.error().message;
  EXPECT_NE(values.error().message.find("checked against " + access_.ca_file), std::string::npos)
      << values.error().message;
}

TEST_F(ConsumerSecrets, AServerThatHangsIsLeftInTime) {
  kube_.pause();
  const auto began = std::chrono::steady_clock::now();
  const auto values = resolve({{"password", "k8s:shop/cache#username"}}, milliseconds(500));
  const auto took = std::chrono::steady_clock::now() - began;
  kube_.resume();
  ASSERT_FALSE(values);
  EXPECT_EQ(values.error().code, Code::deadline) << values.error().message;
  EXPECT_LT(took, milliseconds(5'000));
}

}  // namespace
}  // namespace driftd::test
