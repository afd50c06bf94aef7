// SPDX-License-Identifier: Apache-2.0
// Credentials, the identity of the cluster, and Retry-After.
#include <gmock/gmock.h>

#include <functional>

#include "driftd/sdk/types.hpp"
#include "failure.hpp"
#include "kube/cluster_guard.hpp"
#include "kube/exec_credential.hpp"
#include "kube/retry_after.hpp"

namespace driftd::k8s {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string document(const std::string& status, const std::string& version = "v1") {
  return R"({"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/)" + version +
         R"(","spec":{"interactive":false},"status":)" + status + "}\n";
}

TEST(K8sCredential, IsATokenOrAnExecCredentialOfBothVersions) {
  EXPECT_EQ(kube::parse_credential(" abc.def \n").token, "abc.def");
  EXPECT_EQ(kube::parse_credential("").token, "");
  for (const char* version : {"v1", "v1beta1"}) {
    const kube::Credential with_token = kube::parse_credential(
        document(R"({"token":"abc","expirationTimestamp":"2026-11-21T21:15:00+01:00"})", version));
    EXPECT_EQ(with_token.token, "abc");
    EXPECT_EQ(with_token.expires_ns, 1'795'292'100'000'000'000);
    EXPECT_EQ(with_token.expires, "2026-11-21T21:15:00+01:00");
  }
  const kube::Credential certified = kube::parse_credential(document(
      R"({"clientCertificateData":"-----BEGIN CERTIFICATE-----\n","clientKeyData":"-----BEGIN EC PRIVATE KEY-----\n"})"));
  EXPECT_EQ(certified.token, "");
  EXPECT_EQ(certified.certificate_pem, "-----BEGIN CERTIFICATE-----\n");
  EXPECT_EQ(certified.key_pem, "-----BEGIN EC PRIVATE KEY-----\n");
  EXPECT_FALSE(certified.expires_ns);
}

TEST(K8sCredential, WhatIsWrongIsSaidAndNeverWhatIsInIt) {
  const std::pair<std::string, const char*> cases[] = {
      {R"({"token":"canary")", "no valid JSON"},
      {R"({"kind":"Config","apiVersion":"client.authentication.k8s.io/v1","status":{"token":"canary"}})",
       "found 'Config'"},
      {document(R"({"token":"canary"})", "v1alpha1"), "found 'client.authentication.k8s.io/v1alpha1'"},
      {R"({"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1","spec":{}})", "no status"},
      {document(R"("canary")"), "no status"},
      {document("{}"), "neither a token nor clientCertificateData"},
      {document(R"({"token":["canary"]})"), "status.token: expected a string, found array"},
      {document(R"({"token":"canary\ncanary"})"), "line break"},
      {document(R"({"clientCertificateData":"-----BEGIN canary"})"), "without clientKeyData"},
      {document(R"({"token":"canary","clientKeyData":"-----BEGIN canary"})"), "without clientCertificateData"},
      {document(R"({"clientCertificateData":"Y2FuYXJ5","clientKeyData":"canary"})"), "expected PEM"},
      {document(R"({"token":"canary","expirationTimestamp":"canary"})"), "expected a time of RFC 3339"},
      {document(R"({"token":"canary","expirationTimestamp":7})"), "expected a string, found number"},
      {"canary\ncanary", "line break"}};
  for (const auto& [text, says] : cases) {
    const auto told = failure([&, text = text] { kube::parse_credential(text); });
    EXPECT_EQ(told.code, DRIFTD_UNAUTHENTICATED) << text;
    EXPECT_THAT(told.what(), HasSubstr(says)) << text;
    EXPECT_THAT(told.what(), HasSubstr("settings.token"));
    EXPECT_THAT(told.what(), Not(HasSubstr("canary"))) << text;
  }
}

TEST(K8sCredential, ATimeIsOneOfRfc3339) {
  EXPECT_EQ(kube::parse_time("1970-01-01T00:00:01Z"), 1'000'000'000);
  EXPECT_EQ(kube::parse_time("1969-12-31T23:00:01.25-01:00"), 1'000'000'000);
  EXPECT_EQ(kube::parse_time("2024-02-29T00:00:00Z"), 1'709'164'800'000'000'000);
  EXPECT_EQ(kube::parse_time("9999-12-31T23:59:59Z"), INT64_MAX) << "no nanoseconds count so far";
  EXPECT_EQ(kube::parse_time("0001-01-01T00:00:00Z"), INT64_MIN);
  for (const char* bad : {"", "2026-11-21", "2026-11-21T20:15:00", "2026-11-21T20:15:00z1", "2026-02-30T00:00:00Z",
                          "2026-11-21 20:15:00Z", "2026-11-21T24:00:00Z", "2026-11-21T20:15:00.Z",
                          "2026-11-21T20:15:00+1:00", "+026-11-21T20:15:00Z"}) {
    EXPECT_EQ(kube::parse_time(bad), std::nullopt) << bad;
  }
}

TEST(K8sWitness, WhatAnotherClusterAnswersIsRefusedUntilHealthHasToldOfIt) {
  kube::ClusterGuard guard;
  guard.on_health("a");
  EXPECT_FALSE(guard.begin_refresh());
  guard.check_connection("a");
  EXPECT_THAT(failure([&] { guard.check_connection(""); }).what(),
              HasSubstr("no longer reports its identity (kube-system had uid a)"));
  guard.check_connection("a");
  EXPECT_THAT(failure([&] { guard.check_connection("b"); }).what(), HasSubstr("uid b, before a"));
  EXPECT_EQ(failure([&] { guard.check("a"); }).code, DRIFTD_UNAVAILABLE) << "who watches a hears it, too";
  guard.refresh_failed();
  guard.on_health("b");
  EXPECT_TRUE(guard.begin_refresh()) << "the host was told, and goes on: b it is";
  guard.check_connection("b");
  guard.check("b");
  EXPECT_EQ(guard.uid(), "b");
  EXPECT_EQ(failure([&] { guard.check("a"); }).code, DRIFTD_UNAVAILABLE);
}

TEST(K8sWitness, HealthAloneMovesNothingAndOneThatComesBackIsTheSame) {
  kube::ClusterGuard guard;
  guard.on_health("a");
  guard.begin_refresh();
  EXPECT_EQ(failure([&] { guard.check_connection("b"); }).code, DRIFTD_UNAVAILABLE);  // the watch did
  guard.on_health("b");  // between the host's question and the refresh
  EXPECT_TRUE(guard.begin_refresh());
  EXPECT_EQ(failure([&] { guard.check_connection("b"); }).code, DRIFTD_UNAVAILABLE);
  guard.on_health("a");
  EXPECT_FALSE(guard.begin_refresh());
  guard.check("a");
  guard.check_connection("a");
}

TEST(K8sWitness, AFreshWorkerHoldsItsFirstConnectionsAgainstHealth) {
  kube::ClusterGuard guard;
  guard.on_health("a");
  EXPECT_EQ(failure([&] { guard.check_connection("b"); }).code, DRIFTD_UNAVAILABLE) << "a watch, before any refresh";
  EXPECT_EQ(failure([&] { guard.check_connection(""); }).code, DRIFTD_UNAVAILABLE);
}

TEST(K8sWitness, WithoutTheRightToKnowNothingIsRefused) {
  kube::ClusterGuard guard;
  guard.on_health("");
  EXPECT_FALSE(guard.begin_refresh());
  guard.check_connection("");
  guard.check("");
  EXPECT_EQ(guard.uid(), "");
}

/// A reflector has no refresh that health precedes; its new connections are all checked.
TEST(K8sClusterGuard, ForgetsTheOtherClusterForACallerWithNewConnectionsAndKeepsTheAcceptedOne) {
  kube::ClusterGuard guard;
  guard.check_connection("one");
  EXPECT_FALSE(guard.has_met_other());
  EXPECT_EQ(failure([&] { guard.check_connection("two"); }).code, DRIFTD_UNAVAILABLE);
  EXPECT_TRUE(guard.has_met_other());
  EXPECT_EQ(failure([&] { guard.check("one"); }).code, DRIFTD_UNAVAILABLE);
  guard.forget_other();
  guard.check("one");
  guard.check_connection("one");
  EXPECT_EQ(failure([&] { guard.check_connection("two"); }).code, DRIFTD_UNAVAILABLE);
}

TEST(K8sRetryAfter, HoldsForItsPathAndTime) {
  kube::RetryAfter held;
  const auto now = kube::RetryAfter::Clock::now();
  http::Response response;
  response.status = 429;
  response.retry_after_ms = 7000;
  held.note("/a", response, now);
  EXPECT_EQ(held.left("/a", now + std::chrono::seconds(2)), std::chrono::seconds(5));
  EXPECT_EQ(held.left("/a", now + std::chrono::seconds(7)), std::chrono::seconds(0));
  EXPECT_EQ(held.left("/b", now).count(), 0);
  response.status = 200;
  held.note("/b", response, now);
  EXPECT_EQ(held.left("/b", now).count(), 0);
}

}  // namespace
}  // namespace driftd::k8s
