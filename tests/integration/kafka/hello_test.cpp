// SPDX-License-Identifier: Apache-2.0
// SCRAM hellos: the beginning of a login as another user, which the provider leaves before it would prove a password.
// The broker answers with the salt, so a password that was set again is seen without a right and without the password.
#include "world.hpp"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include "support/cutting_relay.hpp"

namespace driftd::test {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kId = "hello-app/SCRAM-SHA-512";

int port_of(const std::string& address) { return std::stoi(address.substr(address.rfind(':') + 1)); }

class KafkaHello : public SharedKafka {
 protected:
  KafkaHello() { server().scram_user("hello-app", "hello-canary", "SCRAM-SHA-512"); }
  /// A provider that sends hellos as `user`. `more`: further settings, also of scram_hello.
  ProviderProbe hello_probe(const json& more = json::object(), const std::string& user = "hello-app") const {
    json all{{"include", {"scram_user"}},
             {"scram_hello", {{"users", {{{"name", user}, {"mechanism", "SCRAM-SHA-512"}}}}, {"interval_s", 1}}}};
    all.merge_patch(more);
    return probe(all);
  }
  json over_tls() const { return {{"bootstrap_servers", server().tls_address()}, {"tls", {{"ca", server().ca()}}}}; }
  /// The number of failed logins in the broker's log.
  int failed_logins() const {
    const std::string log = server().log(), message = "Failed authentication";
    int out = 0;
    for (auto at = log.find(message); at != std::string::npos; at = log.find(message, at + 1)) ++out;
    return out;
  }
  /// Empty if the refresh did not report one.
  static std::string salt(const Collected& seen) {
    const auto body = seen.body("scram_user", kId);
    return body.is_object() ? body.value("salt", "") : "";
  }
  /// Expects one record without a known attribute, which says why, and that it is not reported as gone.
  static void expect_unknown(const Collected& seen, const std::string& why) {
    EXPECT_EQ(seen.status, DRIFTD_OK) << all_texts(seen);
    ASSERT_EQ(seen.records.size(), 1u);
    EXPECT_EQ(seen.records[0].body, "{}");
    ASSERT_EQ(seen.records[0].unread.size(), 2u);
    EXPECT_THAT(seen.records[0].unread[0].reason, HasSubstr(why));
    ASSERT_EQ(seen.diagnostics.size(), 1u);
    EXPECT_THAT(seen.diagnostics[0].text, HasSubstr(why));
    EXPECT_EQ(seen.diagnostic(DRIFTD_NOT_FOUND), nullptr);
  }
};

TEST_F(KafkaHello, SamePasswordSetAnewWithTheSameIterationsIsAnotherSalt) {
  auto p = hello_probe();
  Collected first;
  ASSERT_TRUE(eventually([&] { return !salt(first = p.refresh()).empty(); })) << all_texts(first);
  EXPECT_EQ(first.complete.at("scram_user"), 1u);
  EXPECT_EQ(first.body("scram_user", kId)["iterations"], 4096);
  EXPECT_TRUE(first.diagnostics.empty()) << all_texts(first);
  EXPECT_TRUE(p.refresh(first.cursor).unchanged);
  server().scram_user("hello-app", "hello-canary", "SCRAM-SHA-512");
  Collected again;
  ASSERT_TRUE(eventually([&] {
    again = p.refresh(first.cursor);
    return again.status == DRIFTD_OK && !again.unchanged && !salt(again).empty();
  })) << all_texts(again);
  EXPECT_NE(salt(again), salt(first));
  EXPECT_EQ(again.body("scram_user", kId)["iterations"], 4096);
  EXPECT_THAT(all_texts(again), Not(HasSubstr("canary")));
}

TEST_F(KafkaHello, TlsIsSpokenAndVerifiedAsTheSettingsSay) {
  auto p = hello_probe(over_tls());
  Collected seen;
  ASSERT_TRUE(eventually([&] { return !salt(seen = p.refresh()).empty(); })) << all_texts(seen);
  json elsewhere = over_tls();
  elsewhere["scram_hello"]["servers"] = server().other_name_address();
  expect_unknown(hello_probe(elsewhere).refresh(), "the server's certificate is refused");
}

TEST_F(KafkaHello, GoesToTheBrokersOfTheClusterThatIsReadWhereverTheFirstAddressLeadsNow) {
  CuttingRelay relay(port_of(server().sasl_address()));
  auto p = hello_probe({{"bootstrap_servers", "127.0.0.1:" + std::to_string(relay.port())}});
  Collected first;
  ASSERT_TRUE(eventually([&] { return !salt(first = p.refresh()).empty(); })) << all_texts(first);
  relay.point_to(free_port());
  server().scram_user("hello-app", "hello-canary", "SCRAM-SHA-512");
  Collected again;
  EXPECT_TRUE(eventually([&] {  // a refresh whose connection was just cut reports no salt
    const std::string now = salt(again = p.refresh());
    return !now.empty() && now != salt(first);
  })) << all_texts(again);
}

TEST_F(KafkaHello, KeyBehindAPassPhraseIsOpenedByItsReference) {
  const TempDir dir;
  const std::string pem = server().client_certificate("hello");
  ASSERT_EQ(
      run({"openssl", "rsa", "-aes256", "-in", pem, "-out", dir.file("locked.key"), "-passout", "pass:canary-phrase"})
          .code,
      0);
  std::map<std::string, std::string> known = secrets();
  known["phrase"] = "canary-phrase";
  ProviderProbe p(
      "providers/kafka.so",
      {{"bootstrap_servers", server().tls_address()},
       {"include", {"scram_user"}},
       {"sasl", sasl("PLAIN", "driftd", "token-1")},
       {"tls",
        {{"ca", server().ca()}, {"certificate", pem}, {"key", dir.file("locked.key")}, {"key_password", "phrase"}}},
       {"scram_hello", {{"users", {{{"name", "hello-app"}, {"mechanism", "SCRAM-SHA-512"}}}}, {"interval_s", 1}}}},
      known);
  Collected seen;
  EXPECT_TRUE(eventually([&] { return !salt(seen = p.refresh()).empty(); })) << all_texts(seen);
  EXPECT_THAT(all_texts(seen), Not(HasSubstr("canary")));
}

TEST_F(KafkaHello, OneHelloInItsIntervalAndItsAnswerInBetween) {
  CuttingRelay relay(port_of(server().sasl_address()));
  auto p =
      hello_probe({{"scram_hello", {{"interval_s", 600}, {"servers", "127.0.0.1:" + std::to_string(relay.port())}}}});
  const auto first = p.refresh();
  ASSERT_FALSE(salt(first).empty()) << all_texts(first);
  EXPECT_GT(relay.passed(), 0);
  relay.cut_after(-1);
  server().scram_user("hello-app", "hello-canary", "SCRAM-SHA-512");
  const auto second = p.refresh();
  EXPECT_EQ(relay.passed(), 0);
  EXPECT_EQ(salt(second), salt(first));
  EXPECT_EQ(second.find("scram_user", kId)->observed_ns, first.find("scram_user", kId)->observed_ns)
      << "the record keeps the time of the hello";
  EXPECT_EQ(salt(p.read({{"scram_user", kId}})), salt(first));
  EXPECT_EQ(relay.passed(), 0);
}

TEST_F(KafkaHello, UnknownUserIsUnknownAndNeverNotFoundAndOnlyItIsALoginThatFailed) {
  const int before = failed_logins();
  ASSERT_FALSE(salt(hello_probe().refresh()).empty());
  EXPECT_EQ(failed_logins(), before) << "a client that leaves before its proof is not a failed login";
  auto p = hello_probe({{"scram_hello", {{"interval_s", 600}}}}, "hello-nobody");
  expect_unknown(p.refresh(), "no such credential");
  EXPECT_TRUE(eventually([&] { return failed_logins() == before + 1; })) << failed_logins() - before;
  const auto again = p.refresh();
  EXPECT_EQ(again.complete.at("scram_user"), 1u) << "an unknown user does not make the kind incomplete";
  const auto read = p.read({{"scram_user", "hello-nobody/SCRAM-SHA-512"}, {"scram_user", "unnamed/SCRAM-SHA-256"}});
  EXPECT_EQ(read.diagnostic(DRIFTD_NOT_FOUND), nullptr) << all_texts(read);
  EXPECT_EQ(failed_logins(), before + 1);
}

TEST_F(KafkaHello, ListenerWithoutSaslSaysWhichSettingToLookAt) {
  auto p = hello_probe({{"scram_hello", {{"servers", server().address()}}}});
  expect_unknown(p.refresh(), "settings.scram_hello.servers");
}

TEST_F(KafkaHello, ServerThatNeverAnswersCostsOneTimeoutAndNothingElse) {
  const int silent = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in name{};
  name.sin_family = AF_INET;
  name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof name;
  ASSERT_EQ(::bind(silent, reinterpret_cast<sockaddr*>(&name), size), 0);
  ASSERT_EQ(::listen(silent, 4), 0);
  ASSERT_EQ(::getsockname(silent, reinterpret_cast<sockaddr*>(&name), &size), 0);
  json users = json::array();
  for (int i = 0; i < 30; ++i) users.push_back({{"name", "app-" + std::to_string(i)}, {"mechanism", "SCRAM-SHA-512"}});
  auto p = hello_probe(
      {{"connect_timeout_ms", 1000},
       {"scram_hello", {{"users", users}, {"servers", "127.0.0.1:" + std::to_string(ntohs(name.sin_port))}}}});
  const auto begin = std::chrono::steady_clock::now();
  const auto seen = p.refresh();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10))
      << "thirty users must share one time-out";
  EXPECT_EQ(seen.status, DRIFTD_OK) << all_texts(seen);
  EXPECT_EQ(seen.records.size(), 30u);
  EXPECT_THAT(all_texts(seen), HasSubstr("no answer in time"));
  ::close(silent);
}

}  // namespace
}  // namespace driftd::test
