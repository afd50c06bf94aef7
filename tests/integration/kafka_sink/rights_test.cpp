// SPDX-License-Identifier: Apache-2.0
// Logins, TLS and rights: what is refused is said with what to do, without secrets, and the sink goes on once it is
// granted.
#include "world.hpp"

namespace driftd::test {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr const char* kPassword = "kafka-canary-9fe2";

/// A secure broker that the tests of this suite share. `driftd` may do nothing until a test grants it.
class KafkaSinkRights : public testing::Test {
 protected:
  KafkaSinkRights() {
    if (server_) return;
    KafkaServer::Options options;
    options.secure = true;
    options.plain_users = {{"driftd", kPassword}};
    server_ = std::make_unique<KafkaServer>(options);
  }
  static void TearDownTestSuite() { server_.reset(); }
  static std::string topic() { return testing::UnitTest::GetInstance()->current_test_info()->name(); }
  static sinks::KafkaSettings settings() {
    auto out = at(server_->sasl_address(), topic());
    out.sasl_mechanism = "PLAIN";
    out.sasl_username = "driftd";
    out.sasl_password = kPassword;
    return out;
  }
  static void grant(const std::vector<std::string>& operations) {
    std::vector<std::string> words{"--add", "--force", "--allow-principal", "User:driftd", "--topic", topic()};
    for (const auto& one : operations) words.insert(words.end(), {"--operation", one});
    server_->acls(words);
  }
  static void expect_no_secret(RelayRunner& runner) {
    EXPECT_THAT(runner.view().state + runner.view().last_error, Not(HasSubstr(kPassword)));
  }
  static std::unique_ptr<KafkaServer> server_;
};
std::unique_ptr<KafkaServer> KafkaSinkRights::server_;

TEST_F(KafkaSinkRights, AWrongPasswordIsSaidWithoutIt) {
  auto with = settings();
  with.sasl_password = std::string(kPassword) + "-wrong";
  RelayRunner runner(kafka_sink(with), kEachMinute);
  runner.add(sample_stored(1));
  EXPECT_TRUE(reports(runner, "check sasl.mechanism, sasl.username and sasl.password"));
  expect_no_secret(runner);
}

TEST_F(KafkaSinkRights, WithoutARightOnTheTopicItNamesTheRightsAndGoesOnOnceTheyAreGranted) {
  server_->topics({"--create", "--topic", topic()});
  RelayRunner runner(kafka_sink(settings()), kEachMinute);
  runner.add(sample_stored(1));
  EXPECT_TRUE(reports(runner, "grant the account WRITE and DESCRIBE on the topic"));
  expect_no_secret(runner);
  grant({"Write", "Describe", "Read", "DescribeConfigs"});
  EXPECT_TRUE(delivered(runner, 1)) << runner.view().last_error;
  EXPECT_EQ(runner.view().state, "connected, topic " + topic());
}

TEST_F(KafkaSinkRights, ARightThatIsTakenAwayWhileEventsFlowCostsNoEvent) {
  server_->topics({"--create", "--topic", topic()});
  grant({"Write", "Describe", "Read", "DescribeConfigs"});
  RelayRunner runner(kafka_sink(settings()), kEachMinute);
  add(runner, 1, 50);
  ASSERT_TRUE(delivered(runner, 50)) << runner.view().last_error;
  server_->acls(
      {"--remove", "--force", "--allow-principal", "User:driftd", "--topic", topic(), "--operation", "Write"});
  std::int64_t n = 50;
  const auto refused = [&] {
    runner.add(sample_stored(++n));
    return runner.view().last_error.find("grant the account WRITE") != std::string::npos;
  };
  ASSERT_TRUE(eventually(refused, std::chrono::seconds(40))) << runner.view().last_error;
  grant({"Write"});
  EXPECT_TRUE(all_there(server_->address(), topic(), runner, n));
  EXPECT_EQ(runner.view().dead, 0);
}

TEST_F(KafkaSinkRights, WithoutReadAndDescribeConfigsItDeliversAndSaysWhatCannotBeChecked) {
  server_->topics({"--create", "--topic", topic()});
  grant({"Write"});  // includes Describe
  MemoryOutbox before;
  {
    RelayRunner runner(kafka_sink(settings()), kEachMinute);
    runner.add(sample_stored(1));
    ASSERT_TRUE(delivered(runner, 1)) << runner.view().last_error;
    EXPECT_THAT(runner.view().state, HasSubstr("its configuration cannot be read (grant DESCRIBE_CONFIGS on it)"));
    ASSERT_TRUE(eventually([&] { return runner.on_core([&] { return runner.outbox.cursors["s"].low_water == 1; }); }));
    before = runner.on_core([&] { return runner.outbox; });
  }
  RelayRunner runner(kafka_sink(settings()), kEachMinute, before);
  runner.add(sample_stored(2));
  ASSERT_TRUE(delivered(runner, 1)) << runner.view().last_error;
  EXPECT_THAT(runner.view().state, HasSubstr("the account may not READ it"));
}

TEST_F(KafkaSinkRights, ATopicWithASmallMaximumThatCannotBeReadGetsEveryEventThatFits) {
  server_->topics({"--create", "--topic", topic(), "--config", "max.message.bytes=6000"});
  grant({"Write"});  // a batch of some of these events is too large, and nobody told the sink
  RelayRunner runner(kafka_sink(settings()), kEachMinute);
  for (std::int64_t n = 1; n <= 300; ++n) {
    core::StoredEvent event = sample_stored(n);
    event.payload += std::string(n == 150 ? 10'000 : 1'000, 'x');
    runner.add(std::move(event));
  }
  ASSERT_TRUE(delivered(runner, 299)) << runner.view().state << runner.view().last_error;
  EXPECT_TRUE(eventually([&] { return runner.view().dead == 1; }));
  EXPECT_EQ(missing(server_->address(), topic(), 300), std::vector<std::int64_t>{150});
}

TEST_F(KafkaSinkRights, WithoutCreateAnAbsentTopicIsAnError) {
  grant({"Write", "Describe"});
  RelayRunner runner(kafka_sink(settings()), kEachMinute);
  runner.add(sample_stored(1));
  EXPECT_TRUE(reports(runner, "it is absent and cannot be created"));
  EXPECT_TRUE(reports(runner, "and CREATE if the agent is to create"));
}

TEST_F(KafkaSinkRights, OverTlsTheBrokersCertificateIsChecked) {
  server_->topics({"--create", "--topic", topic()});
  grant({"Write", "Describe"});
  auto with = settings();
  with.tls = true;
  with.tls_ca = server_->ca();
  with.bootstrap_servers = {server_->tls_address()};
  {
    RelayRunner runner(kafka_sink(with), kEachMinute);
    runner.add(sample_stored(1));
    EXPECT_TRUE(delivered(runner, 1)) << runner.view().last_error;
  }
  with.bootstrap_servers = {server_->other_name_address()};
  {
    RelayRunner runner(kafka_sink(with), kEachMinute);
    runner.add(sample_stored(1));
    EXPECT_TRUE(reports(runner, "check tls.ca"));
    expect_no_secret(runner);
  }
  with.tls_server_name = "broker.example";
  RelayRunner runner(kafka_sink(with), kEachMinute);
  runner.add(sample_stored(1));
  EXPECT_TRUE(delivered(runner, 1)) << runner.view().last_error;
}

TEST_F(KafkaSinkRights, AClientCertificateIsALogin) {
  server_->topics({"--create", "--topic", topic()});
  server_->acls({"--add", "--force", "--allow-principal", "User:CN=sink", "--topic", topic(), "--operation", "Write"});
  auto with = at(server_->mtls_address(), topic());
  with.tls = true;
  with.tls_ca = server_->ca();
  with.tls_certificate = with.tls_key = server_->client_certificate("sink");
  RelayRunner runner(kafka_sink(with), kEachMinute);
  runner.add(sample_stored(1));
  EXPECT_TRUE(delivered(runner, 1)) << runner.view().last_error;
}

TEST_F(KafkaSinkRights, ScramWorksWithKafka3AndIsExplainedWithKafka4) {
  KafkaServer::Options options;
  options.version = "3.9.1";
  options.secure = true;
  const KafkaServer older(options);
  for (const KafkaServer* server : {&older, static_cast<const KafkaServer*>(server_.get())}) {
    server->scram_user("driftd", kPassword);
    server->topics({"--create", "--topic", topic()});
    server->acls({"--add", "--force", "--allow-principal", "User:driftd", "--topic", topic(), "--operation", "Write"});
  }
  auto with = settings();
  with.sasl_mechanism = "SCRAM-SHA-256";
  {
    RelayRunner runner(kafka_sink(with), kEachMinute);
    runner.add(sample_stored(1));
    EXPECT_TRUE(reports(runner, "librdkafka before 2.6.1 cannot log in there by SCRAM"));
  }
  with.bootstrap_servers = {older.sasl_address()};
  RelayRunner runner(kafka_sink(with), kEachMinute);
  runner.add(sample_stored(1));
  EXPECT_TRUE(delivered(runner, 1)) << runner.view().last_error;
}

TEST_F(KafkaSinkRights, ATransactionalIdThatMayNotBeUsedIsSaid) {
  server_->topics({"--create", "--topic", topic()});
  grant({"Write", "Describe"});
  auto with = settings();
  with.transactional_id = "not-mine";
  RelayRunner runner(kafka_sink(with), kEachMinute);
  runner.add(sample_stored(1));
  EXPECT_TRUE(reports(runner, "grant the account WRITE and DESCRIBE on the transactional id"));
}

}  // namespace
}  // namespace driftd::test
