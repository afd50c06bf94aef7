// SPDX-License-Identifier: Apache-2.0
// Logins and TLS. No password is in any text that a call returns.
#include "world.hpp"

#include <ctime>

#include "support/certificates.hpp"

namespace driftd::test {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

/// A JSON Web Token without a signature, {"alg":"none"}.{claims}., as Kafka's own unsecured validator accepts it.
std::string unsecured_token(const std::string& subject, std::int64_t lifetime_s) {
  const std::int64_t now = ::time(nullptr);
  const std::string claims = json{{"sub", subject}, {"iat", now - 10}, {"exp", now + lifetime_s}}.dump();
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  std::string out = "eyJhbGciOiJub25lIn0.";
  unsigned bits = 0;
  int count = 0;
  for (const unsigned char c : claims) {
    bits = bits << 8 | c;
    for (count += 8; count >= 6; count -= 6) out.push_back(kDigits[bits >> (count - 6) & 63]);
  }
  if (count > 0) out.push_back(kDigits[bits << (6 - count) & 63]);
  return out + ".";
}

class KafkaAccess : public SharedKafka {
 protected:
  static ProviderProbe probe_with(const json& settings, std::map<std::string, std::string> more_secrets = {}) {
    more_secrets.merge(secrets());
    return ProviderProbe("providers/kafka.so", settings, more_secrets);
  }
  static json over_tls(const std::string& address, const json& tls) {
    return {{"bootstrap_servers", address},
            {"tls", tls},
            {"sasl", sasl("PLAIN", "driftd", "token-1")},
            {"connect_timeout_ms", 3000}};
  }
};

TEST_F(KafkaAccess, WrongPasswordIsUnauthenticatedWithinSecondsAndNotRepeated) {
  auto p = probe_with({{"bootstrap_servers", server().sasl_address()}, {"sasl", sasl("PLAIN", "driftd", "bad")}},
                      {{"bad", "wrong-canary"}});
  const auto begin = std::chrono::steady_clock::now();
  const auto seen = p.refresh();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(8));
  EXPECT_EQ(seen.status, DRIFTD_UNAUTHENTICATED) << all_texts(seen);
  const auto health = p.health();
  EXPECT_EQ(health.health.state, static_cast<std::uint32_t>(DRIFTD_HEALTH_DEGRADED)) << health.health.reason;
  EXPECT_THAT(all_texts(seen) + all_texts(health), Not(HasSubstr("canary")));
}

TEST_F(KafkaAccess, ScramAgainstKafka4IsExplainedWhereTheLibraryCannot) {
  server().scram_user("scrammer", "scram-canary");
  auto p =
      probe_with({{"bootstrap_servers", server().sasl_address()}, {"sasl", sasl("SCRAM-SHA-256", "scrammer", "scram")}},
                 {{"scram", "scram-canary"}});
  const auto seen = p.refresh();
  if (seen.status == DRIFTD_OK) GTEST_SKIP() << "LOUD: this librdkafka is 2.6.1 or newer, which can";
  EXPECT_EQ(seen.status, DRIFTD_UNAUTHENTICATED);
  EXPECT_THAT(all_texts(seen), HasSubstr("librdkafka before 2.6.1"));
  EXPECT_THAT(all_texts(seen), Not(HasSubstr("canary")));
}

TEST_F(KafkaAccess, TlsWithTheRightAuthorityAndNameWorks) {
  auto p = probe_with(over_tls(server().tls_address(), {{"ca", server().ca()}}));
  const auto seen = p.refresh();
  EXPECT_EQ(seen.status, DRIFTD_OK) << all_texts(seen);
  EXPECT_EQ(seen.body("broker", "1")["endpoint"], server().tls_address());
}

TEST_F(KafkaAccess, CertificateOfAnotherNameIsRefusedUnlessTheSettingsNameIt) {
  const auto refused = probe_with(over_tls(server().other_name_address(), {{"ca", server().ca()}})).refresh();
  EXPECT_EQ(refused.status, DRIFTD_UNAVAILABLE);
  EXPECT_THAT(all_texts(refused), HasSubstr("certificate"));
  const json named{{"ca", server().ca()}, {"server_name", "broker.example"}};
  const auto accepted = probe_with(over_tls(server().other_name_address(), named)).refresh();
  EXPECT_EQ(accepted.status, DRIFTD_OK) << all_texts(accepted);
  const auto other = probe_with(over_tls(server().tls_address(), named)).refresh();
  EXPECT_EQ(other.status, DRIFTD_UNAVAILABLE) << "the address is right, but its certificate has another name";
}

TEST_F(KafkaAccess, CertificateOfAnUnknownAuthorityIsRefused) {
  const auto seen = probe_with(over_tls(server().tls_address(), json::object())).refresh();
  EXPECT_EQ(seen.status, DRIFTD_UNAVAILABLE);
  EXPECT_THAT(all_texts(seen), HasSubstr("certificate"));
}

TEST_F(KafkaAccess, FileThatIsNoCertificateNamesTheSetting) {
  TempDir dir;
  const auto seen =
      probe_with(over_tls(server().tls_address(), {{"ca", dir.write("ca.pem", "no certificate")}})).refresh();
  EXPECT_EQ(seen.status, DRIFTD_INVALID);
  EXPECT_THAT(all_texts(seen), HasSubstr("ssl.ca.location"));
}

TEST_F(KafkaAccess, BearerTokenLogsInAndAnExpiredOneSaysSo) {
  const json settings{{"bootstrap_servers", server().sasl_address()},
                      {"sasl", {{"mechanism", "OAUTHBEARER"}, {"token", "t"}}}};
  const auto seen = probe_with(settings, {{"t", unsecured_token("driftd", 600)}}).refresh();
  EXPECT_EQ(seen.status, DRIFTD_OK) << all_texts(seen);
  EXPECT_EQ(seen.complete.count("acl"), 1u);
  const auto old = probe_with(settings, {{"t", unsecured_token("driftd", -5)}}).refresh();
  EXPECT_EQ(old.status, DRIFTD_UNAUTHENTICATED);
  EXPECT_THAT(all_texts(old), HasSubstr("expired"));
}

TEST_F(KafkaAccess, ClientCertificateIsThePrincipalAndItsRightsAreItsOwn) {
  for (const auto& where : {std::vector<std::string>{"--cluster"}, {"--topic", "*"}}) {
    std::vector<std::string> words{"--add",    "--allow-principal", "User:CN=driftd", "--operation",
                                   "Describe", "--operation",       "DescribeConfigs"};
    words.insert(words.end(), where.begin(), where.end());
    server().acls(words);
  }
  const auto probe_by = [&](const std::string& pem) {
    return probe_with({{"bootstrap_servers", server().mtls_address()},
                       {"connect_timeout_ms", 3000},
                       {"tls", {{"ca", server().ca()}, {"certificate", pem}, {"key", pem}}}});
  };
  auto ours = probe_by(server().client_certificate("driftd"));
  Collected seen;
  ASSERT_TRUE(eventually([&] { return seen = ours.refresh(), seen.complete.count("topic") == 1; })) << all_texts(seen);
  for (const char* kind : {"cluster", "broker", "acl", "group"}) EXPECT_EQ(seen.complete.count(kind), 1u) << kind;
  EXPECT_EQ(ours.health().health.state, static_cast<std::uint32_t>(DRIFTD_HEALTH_UP));

  const auto stranger = probe_by(server().client_certificate("stranger")).refresh();
  EXPECT_EQ(stranger.status, DRIFTD_OK) << "the broker accepts the certificate, but grants it nothing";
  EXPECT_EQ(stranger.complete.count("topic") + stranger.complete.count("acl") + stranger.complete.count("group"), 0u);
  EXPECT_THAT(all_texts(stranger), HasSubstr("Describe on Topic *"));
}

TEST_F(KafkaAccess, ClientCertificateThatTheBrokerDoesNotKnowIsUnauthenticatedAndNamed) {
  const Certificates elsewhere;
  elsewhere.issue("wrong", "driftd");
  const json no_certificate{{"ca", server().ca()}};
  const json wrong{
      {"ca", server().ca()}, {"certificate", elsewhere.certificate("wrong")}, {"key", elsewhere.key("wrong")}};
  for (const json& tls : {wrong, no_certificate}) {
    auto p = probe_with({{"bootstrap_servers", server().mtls_address()}, {"tls", tls}, {"connect_timeout_ms", 3000}});
    const auto seen = p.refresh();
    EXPECT_EQ(seen.status, DRIFTD_UNAUTHENTICATED) << all_texts(seen);
    EXPECT_TRUE(seen.records.empty());
    EXPECT_TRUE(seen.complete.empty());
    EXPECT_THAT(all_texts(seen), HasSubstr("settings.tls.certificate"));
    const auto health = p.health().health;
    EXPECT_EQ(health.state, static_cast<std::uint32_t>(DRIFTD_HEALTH_DEGRADED)) << health.reason;
    EXPECT_THAT(health.reason, HasSubstr("settings.tls.certificate"));
    EXPECT_NE(p.read({{"topic", "any"}}).status, DRIFTD_OK);
  }
}

}  // namespace
}  // namespace driftd::test
