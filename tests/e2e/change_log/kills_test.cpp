// SPDX-License-Identifier: Apache-2.0
// The sidecar is killed, frozen, absent or reached by TLS, while a real store and the real runner send to it.
#include <gmock/gmock.h>
#include <random>

#include "e2e/change_log/world.hpp"
#include "support/certificates.hpp"
#include "support/naps.hpp"

namespace driftd::test {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;

class ChangeLogKills : public testing::Test {
 protected:
  std::string socket() const { return dir_.file("run/change-logs.sock"); }
  rpc::ChangeLogTarget target() const {
    rpc::ChangeLogTarget out;
    out.socket = socket();
    return out;
  }
  Sidecar sidecar(std::vector<std::string> options = {}) const {
    return Sidecar("unix://" + socket(), dir_.file("changes.jsonl"), std::move(options));
  }
  std::string data_dir() const { return dir_.file("data"); }
  TempDir dir_;
};

/// The issue's figure: killed 50 times under 200 entries a second, 0 lost. The load is ten entries every 50 ms.
TEST_F(ChangeLogKills, FiftySidecarsAreKilledUnderTwoHundredEntriesASecondAndNoneIsLost) {
  constexpr int kKills = 50;
  Sidecar sidecar = this->sidecar();
  std::mt19937 random(18);
  const auto begin = std::chrono::steady_clock::now();
  ChangeLogRun run(data_dir(), target());
  const Naps naps;
  run.produce(10);
  for (int kill = 0; kill < kKills; ++kill) {
    sidecar.start();
    const auto before = sidecar.size();
    ASSERT_TRUE(eventually([&] { return sidecar.size() > before; })) << run.view().state << sidecar.log();
    const int until = run.produced() + static_cast<int>(random() % 60);
    ASSERT_TRUE(eventually([&] { return run.produced() >= until; }));
    sidecar.kill();
  }
  const long ran = naps.seconds();
  const int produced_meanwhile = run.produced();
  const double took = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  run.stop_producing();
  sidecar.start();
  ASSERT_TRUE(
      eventually([&] { return run.view().waiting == 0 && run.position().settled == run.produced(); }, seconds(60)))
      << run.view().state;
  EXPECT_EQ(sidecar.stop(), 0);
  const auto counts = sidecar.counts();
  int lines = 0;
  for (const auto& [id, count] : counts) lines += count;
  const auto entries = static_cast<int>(counts.size());
  std::printf("sidecar killed %d times in %.1f s, %d entries (%.0f/s): %d lost, %d doubles, %ld bytes a line\n", kKills,
              took, run.produced(), run.produced() / took, run.produced() - entries, lines - entries,
              static_cast<long>(sidecar.size()) / std::max(lines, 1));
  EXPECT_EQ(entries, run.produced());
  ASSERT_GT(ran, 0);
  EXPECT_GE(produced_meanwhile / ran, 150)
      << "the producer was not fast enough for the figure, 200 a second, in the " << ran << " s that this machine ran";
  EXPECT_EQ(run.view().refused, 0);
  EXPECT_EQ(run.view().dropped, 0);
  EXPECT_GT(run.view().failures, 0);
}

TEST_F(ChangeLogKills, AnAbsentSidecarCostsNothingAndTheLagIsShown) {
  ChangeLogRun run(data_dir(), target());
  run.commit(0, 500);
  ASSERT_TRUE(eventually([&] { return run.view().failing && run.view().waiting == 500; }));
  EXPECT_EQ(run.view().oldest_ns, 1'760'000'000'001'000'000);
  EXPECT_THAT(run.view().destination, HasSubstr("change-logs.sock"));
  Sidecar sidecar = this->sidecar();
  sidecar.start();
  ASSERT_TRUE(eventually([&] { return run.view().waiting == 0; })) << run.view().state;
  EXPECT_EQ(sidecar.counts().size(), 500u);
  EXPECT_EQ(run.view().state, "idle");
  EXPECT_EQ(sidecar.stop(), 0);
  EXPECT_FALSE(std::filesystem::exists(socket())) << "a sidecar that ends removes its socket";
}

/// One that hangs is not waited for for ever: the call ends, and the entries go on once it answers.
TEST_F(ChangeLogKills, ACallToAFrozenSidecarEndsAndNothingIsLost) {
  Sidecar sidecar = this->sidecar();
  sidecar.start();
  rpc::ChangeLogTarget impatient = target();
  impatient.timeout = std::chrono::milliseconds(500);
  ChangeLogRun run(data_dir(), impatient);
  run.commit(0, 1);
  ASSERT_TRUE(eventually([&] { return run.view().sent == 1; })) << sidecar.log();
  sidecar.freeze();
  run.commit(1, 10);
  ASSERT_TRUE(eventually([&] { return run.view().failing; }));
  EXPECT_THAT(run.view().state, HasSubstr("it did not answer within 500 ms"));
  sidecar.thaw();
  ASSERT_TRUE(eventually([&] { return run.view().waiting == 0; })) << run.view().state;
  EXPECT_EQ(sidecar.counts().size(), 11u);
}

TEST_F(ChangeLogKills, AnEntryThatIsTooLargeIsWrittenWithoutItsStates) {
  Sidecar sidecar = this->sidecar({"--max-entry-bytes", "8000"});
  sidecar.start();
  ChangeLogRun run(data_dir(), target());
  run.commit(0, 1);
  run.commit(1, 1, 10'000);
  run.commit(2, 1);
  ASSERT_TRUE(eventually([&] { return run.position().settled == 3; })) << run.view().state;
  EXPECT_EQ(run.view().refused, 0);
  std::map<std::string, nlohmann::json> lines;
  for (auto& line : sidecar.lines()) lines[line.at("operation_id")] = line;
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines.at("op-0000000000000001").count("desired"), 0u);
  EXPECT_THAT(lines.at("op-0000000000000001").value("omitted", ""), HasSubstr("this receiver takes 8000 at most"));
  EXPECT_EQ(lines.at("op-0000000000000002").count("desired"), 1u);
  EXPECT_THAT(sidecar.log(), HasSubstr("operation op-0000000000000001) is refused"));
}

TEST_F(ChangeLogKills, AboveTheLimitTheOldestAreDroppedAndTheSequenceShowsIt) {
  ChangeLogRun run(data_dir(), target(), 1 << 20);
  for (int i = 0; i < 100; i += 10) run.commit(i, 10, 10'000);  // 2.1 MB
  ASSERT_TRUE(eventually([&] { return run.position().dropped > 0; }));
  Sidecar sidecar = this->sidecar();
  sidecar.start();
  ASSERT_TRUE(eventually([&] { return run.position().settled == 100; })) << run.view().state;
  const auto lines = sidecar.lines();
  const auto dropped = run.position().dropped;
  EXPECT_EQ(lines.size() + static_cast<std::size_t>(dropped), 100u);
  EXPECT_EQ(lines.front().at("sequence"), dropped + 1);
}

class ChangeLogTls : public ChangeLogKills {
 protected:
  ChangeLogTls() {
    certificates_.issue("receiver", "receiver", "DNS:localhost,IP:127.0.0.1");
    certificates_.issue("agent", "agent");
    strangers_.issue("agent", "agent");
    strangers_.issue("receiver", "receiver", "DNS:localhost,IP:127.0.0.1");
    port_ = free_port();
  }
  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }
  Sidecar receiver(const Certificates& own) const {
    return Sidecar(address(), dir_.file("changes.jsonl"),
                   {"--tls-cert", own.certificate("receiver"), "--tls-key", own.key("receiver"), "--tls-client-ca",
                    certificates_.ca()});
  }
  rpc::ChangeLogTarget target_with(const Certificates& own) const {
    rpc::ChangeLogTarget out;
    out.address = address();
    out.cert = own.certificate("agent");
    out.key = own.key("agent");
    out.ca = certificates_.ca();
    return out;
  }
  Certificates certificates_, strangers_;
  int port_ = 0;
};

TEST_F(ChangeLogTls, TheRightCertificateIsAcceptedAndAStrangersIsNot) {
  Sidecar receiver = this->receiver(certificates_);
  receiver.start();
  {
    ChangeLogRun stranger(dir_.file("stranger"), target_with(strangers_));
    stranger.commit(0, 1);
    const auto turned_away = [&] { return receiver.log().find("Handshake failed") != std::string::npos; };
    ASSERT_TRUE(eventually([&] { return turned_away() && stranger.view().failures > 3; })) << stranger.view().state;
    EXPECT_EQ(stranger.position().settled, 0) << "it waits: a certificate can be corrected";
    EXPECT_EQ(stranger.view().refused, 0);
  }
  EXPECT_EQ(receiver.lines().size(), 0u);
  ChangeLogRun run(data_dir(), target_with(certificates_));
  run.commit(10, 5);
  ASSERT_TRUE(eventually([&] { return run.view().waiting == 0 && run.view().sent == 5; })) << run.view().state;
  EXPECT_EQ(receiver.counts().size(), 5u);
  EXPECT_EQ(receiver.stop(), 0);
}

TEST_F(ChangeLogTls, AReceiverOfAnotherAuthorityGetsNothing) {
  Sidecar receiver = this->receiver(strangers_);
  receiver.start();
  ChangeLogRun run(data_dir(), target_with(certificates_));
  run.commit(0, 1);
  const auto turned_away = [&] { return run.view().state.find("certificate verify failed") != std::string::npos; };
  ASSERT_TRUE(eventually([&] { return turned_away() && run.view().failures > 3; })) << run.view().state;
  EXPECT_EQ(run.position().settled, 0);
  EXPECT_EQ(receiver.lines().size(), 0u);
}

}  // namespace
}  // namespace driftd::test
