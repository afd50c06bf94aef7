// SPDX-License-Identifier: Apache-2.0
// The webhook against an HTTPS receiver: which certificates it accepts, which one it presents, and what a hostile
// receiver can do to it.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cstdlib>
#include <ctime>

#include "hook.hpp"

namespace driftd::test {
namespace {

const char* const kAddress = "IP:127.0.0.1";

/// An authority, a receiver's certificate, and an agent's.
struct Site {
  Certificates certificates;
  Site() {
    certificates.issue("receiver", "receiver", kAddress);
    certificates.issue("agent", "agent");
  }
  HttpReceiverTls tls(bool asks_for_client = false) const {
    return {certificates.certificate("receiver"), certificates.key("receiver"),
            asks_for_client ? certificates.ca() : ""};
  }
};

sinks::WebhookSettings trusting(const HttpReceiver& receiver, const Site& site) {
  auto out = hook_settings(receiver);
  out.tls.ca = site.certificates.ca();
  return out;
}

TEST(WebhookHttpsTest, OnlyAReceiverOfATrustedAuthorityGetsAByte) {
  const Site site;
  HttpReceiver receiver({{}}, site.tls());
  {
    RelayRunner runner(hook(hook_settings(receiver)));
    runner.add(sample_stored(1));
    ASSERT_TRUE(eventually([&] { return runner.view().state.rfind("circuit open", 0) == 0; })) << runner.view().state;
    EXPECT_NE(runner.view().last_error.find("certificate"), std::string::npos) << runner.view().last_error;
  }
  EXPECT_TRUE(receiver.received().empty());
  RelayRunner runner(hook(trusting(receiver, site)));
  runner.add(sample_stored(1));
  ASSERT_TRUE(eventually([&] { return runner.view().delivered == 1; })) << runner.view().last_error;
  EXPECT_EQ(receiver.received().at(0).version, "HTTP/1.1") << "though the receiver prefers HTTP/2";
  EXPECT_EQ(receiver.received().at(0).peer, "");
}

TEST(WebhookHttpsTest, ACertificateForAnotherNameIsRefused) {
  const Site site;
  site.certificates.issue("other", "other", "DNS:other.example");
  HttpReceiver receiver({{}}, {site.certificates.certificate("other"), site.certificates.key("other"), ""});
  RelayRunner runner(hook(trusting(receiver, site)));
  runner.add(sample_stored(1));
  ASSERT_TRUE(eventually([&] { return runner.view().state.rfind("circuit open", 0) == 0; })) << runner.view().state;
  EXPECT_TRUE(receiver.received().empty());
}

TEST(WebhookHttpsTest, TheClientCertificateIsShownAndFollowedWhenItsFilesChange) {
  const Site site;
  site.certificates.issue("next", "next");
  HttpReceiver receiver({{}}, site.tls(true));
  auto settings = trusting(receiver, site);
  const TempDir dir;
  settings.tls.cert = dir.write("tls.crt", read_file(site.certificates.certificate("agent")));
  settings.tls.key = dir.write("tls.key", read_file(site.certificates.key("agent")));
  RelayRunner runner(hook(settings));
  const auto deliver = [&](int n) {
    runner.add(sample_stored(n));
    EXPECT_TRUE(eventually([&] { return runner.view().delivered == n; })) << runner.view().last_error;
    return receiver.received().at(static_cast<std::size_t>(n - 1)).peer;
  };
  EXPECT_EQ(deliver(1), "agent");
  const auto replace = [&](const std::string& file, const std::string& from) {
    std::filesystem::rename(dir.write("new", read_file(from)), file);
  };
  replace(settings.tls.cert, site.certificates.certificate("next"));
  EXPECT_EQ(deliver(2), "agent") << "the new certificate without its key cannot be used";
  EXPECT_NE(runner.view().state.find("is not the key of " + settings.tls.cert), std::string::npos)
      << runner.view().state;
  replace(settings.tls.key, site.certificates.key("next"));
  EXPECT_EQ(deliver(3), "next");
  EXPECT_EQ(runner.view().state.find("is not the key"), std::string::npos) << runner.view().state;
  dir.write("tls.key", "-----BEGIN PRIVATE KEY-----\nhalf");
  EXPECT_EQ(deliver(4), "next");
  std::filesystem::remove(settings.tls.cert);
  EXPECT_EQ(deliver(5), "next");
}

TEST(WebhookHttpsTest, AnAuthorityThatIsReplacedIsTheOneThatIsAsked) {
  const Site site, foreign;
  HttpReceiver receiver({{}}, site.tls());
  auto settings = trusting(receiver, site);
  const TempDir dir;
  settings.tls.ca = dir.write("ca.pem", read_file(site.certificates.ca()));
  RelayRunner runner(hook(settings));
  runner.add(sample_stored(1));
  ASSERT_TRUE(eventually([&] { return runner.view().delivered == 1; })) << runner.view().last_error;
  std::filesystem::rename(dir.write("new", read_file(foreign.certificates.ca())), settings.tls.ca);
  runner.add(sample_stored(2));
  ASSERT_TRUE(eventually([&] { return runner.view().state.rfind("circuit open", 0) == 0; }))
      << "the open connection is not used again: " << runner.view().state;
  std::filesystem::rename(dir.write("new", read_file(site.certificates.ca())), settings.tls.ca);
  EXPECT_TRUE(eventually([&] { return runner.view().delivered == 2; })) << runner.view().last_error;
}

TEST(WebhookHttpsTest, WithoutUsableFilesNothingIsSentAndTheFileIsNamed) {
  const Site site;
  HttpReceiver receiver({{}}, site.tls());
  auto settings = trusting(receiver, site);
  const TempDir dir;
  settings.tls.ca = dir.file("absent.pem");
  RelayRunner runner(hook(settings));
  runner.add(sample_stored(1));
  ASSERT_TRUE(eventually([&] { return runner.view().last_error.find(settings.tls.ca) != std::string::npos; }))
      << runner.view().last_error;
  EXPECT_TRUE(receiver.received().empty());
  dir.write("absent.pem", read_file(site.certificates.ca()));
  EXPECT_TRUE(eventually([&] { return runner.view().delivered == 1; })) << runner.view().last_error;
}

/// Returns the time as a header says it.
std::string http_date(std::time_t time) {
  char out[64] = {};
  std::tm parts{};
  std::strftime(out, sizeof out, "%a, %d %b %Y %H:%M:%S GMT", ::gmtime_r(&time, &parts));
  return out;
}

TEST(WebhookHttpsTest, RetryAfterIsObeyedAsSecondsAndAsADate) {
  const Site site;
  for (const std::string& when : {std::string("3"), http_date(std::time(nullptr) + 4)}) {
    for (const int status : {429, 503}) {
      const auto date = when.size() > 2 ? http_date(std::time(nullptr) + 4) : when;
      HttpReceiver receiver({HttpScripted{status, {{"Retry-After", date}}}, HttpScripted{200}}, site.tls());
      RelayRunner runner(hook(trusting(receiver, site)));
      runner.add(sample_stored(1));
      ASSERT_TRUE(eventually([&] { return receiver.received().size() == 1; }));
      const auto refused = std::chrono::steady_clock::now();
      ASSERT_TRUE(eventually([&] { return runner.view().delivered == 1; })) << runner.view().last_error;
      EXPECT_GE(std::chrono::steady_clock::now() - refused, std::chrono::milliseconds(2'300)) << date;
      EXPECT_EQ(receiver.received().size(), 2U);
    }
  }
}

/// What a hostile receiver does, and what the agent takes it for.
struct Hostile {
  const char* trick;
  bool delivered;         ///< its 2xx counts although its body does not end well
  const char* complaint;  ///< part of the error, where it does not count
};

void PrintTo(const Hostile& hostile, std::ostream* out) { *out << hostile.trick; }

class HostileReceiver : public ::testing::TestWithParam<Hostile> {};

TEST_P(HostileReceiver, CostsItsTimeOutAndLittleMemoryAndNoEvent) {
  const Site site;
  HttpReceiver receiver({{200, {}, 0, 0, {}, GetParam().trick}, HttpScripted{200}}, site.tls());
  auto settings = trusting(receiver, site);
  settings.total_timeout = std::chrono::seconds(2);
  RelayRunner runner(hook(settings));
  const auto before = peak_kilobytes();
  const auto begun = std::chrono::steady_clock::now();
  runner.add(sample_stored(1));
  ASSERT_TRUE(eventually([&] { return runner.view().delivered == 1 || !runner.view().last_error.empty(); }));
  EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(6)) << "its time-out is 2 s";
  EXPECT_LT(peak_kilobytes() - before, 24 << 10) << "KiB";
  const auto view = runner.view();
  EXPECT_EQ(view.delivered == 1, GetParam().delivered) << view.last_error;
  EXPECT_NE(view.last_error.find(GetParam().complaint), std::string::npos) << view.last_error;
  EXPECT_TRUE(eventually([&] { return runner.view().delivered == 1; })) << runner.view().last_error;
}

INSTANTIATE_TEST_SUITE_P(Tricks, HostileReceiver,
                         ::testing::Values(Hostile{"drip_head", false, "imed out"}, Hostile{"drip_body", true, ""},
                                           Hostile{"gibibyte", true, ""}, Hostile{"gzip_bomb", true, ""},
                                           Hostile{"interim", false, "more than 64 KiB"},
                                           Hostile{"continues", true, ""}, Hostile{"only_interim", false, "imed out"},
                                           Hostile{"garbage", false, ""},
                                           Hostile{"cut", false, "within the head of the answer"}),
                         [](const auto& one) { return std::string(one.param.trick); });

TEST(WebhookHttpsTest, AReceiverThatTakesTheConnectionAndNeverShakesHandsIsAFailureOfTheEndpoint) {
  const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  ASSERT_EQ(::bind(listener, reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(::listen(listener, 8), 0);
  ASSERT_EQ(::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size), 0);
  sinks::WebhookSettings settings;
  settings.secrets = {kNewSecret};
  settings.url = "https://127.0.0.1:" + std::to_string(ntohs(address.sin_port)) + "/hook";
  settings.allow = {"127.0.0.1"};
  settings.connect_timeout = std::chrono::milliseconds(700);
  RelayRunner runner(hook(settings));
  runner.add(sample_stored(1));
  EXPECT_TRUE(eventually([&] { return runner.view().state.rfind("circuit open", 0) == 0; })) << runner.view().state;
  EXPECT_EQ(runner.view().retrying, 0) << "no attempt of the event is used up";
  ::close(listener);
}

/// connect_proxy.py on a free port.
class Proxy {
 public:
  explicit Proxy(int status = 200) : port_(free_port()) {
    child_ = Child({"python3", DRIFTD_SOURCE_DIR "/tests/support/connect_proxy.py", std::to_string(port_),
                    dir_.file("targets"), std::to_string(status)},
                   {dir_.file("log"), {}, {}});
    const auto listens = [this] {
      return run({"python3", "-c",
                  "import socket; socket.create_connection(('127.0.0.1', " + std::to_string(port_) + "))"})
                 .code == 0;
    };
    if (!eventually(listens)) throw std::runtime_error(read_file(dir_.file("log")));
  }
  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }
  std::string targets() const {
    return std::filesystem::exists(dir_.file("targets")) ? read_file(dir_.file("targets")) : "";
  }

 private:
  TempDir dir_;
  int port_;
  Child child_;
};

TEST(WebhookProxyTest, OnlyTheProxyOfTheSettingsIsUsed) {
  const Site site;
  HttpReceiver receiver({{}}, site.tls());
  const Proxy proxy;
  for (const char* name : {"https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"})
    ::setenv(name, proxy.url().c_str(), 1);
  {
    RelayRunner runner(hook(trusting(receiver, site)));
    runner.add(sample_stored(1));
    ASSERT_TRUE(eventually([&] { return runner.view().delivered == 1; })) << runner.view().last_error;
  }
  for (const char* name : {"https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"}) ::unsetenv(name);
  EXPECT_EQ(proxy.targets(), "") << "the environment's proxy was used";
  auto settings = trusting(receiver, site);
  settings.proxy = proxy.url();
  settings.proxy_trusted = true;
  RelayRunner runner(hook(settings));
  runner.add(sample_stored(1));
  ASSERT_TRUE(eventually([&] { return runner.view().delivered == 1; })) << runner.view().last_error;
  EXPECT_EQ(proxy.targets(), "127.0.0.1:" + std::to_string(receiver.port()) + "\n");
}

TEST(WebhookProxyTest, AProxyThatRefusesIsAFailureOfTheEndpoint) {
  const Site site;
  HttpReceiver receiver({{}}, site.tls());
  const Proxy proxy(403);
  auto settings = trusting(receiver, site);
  settings.proxy = proxy.url();
  settings.proxy_trusted = true;
  RelayRunner runner(hook(settings));
  runner.add(sample_stored(1));
  ASSERT_TRUE(eventually([&] { return runner.view().state.rfind("circuit open", 0) == 0; })) << runner.view().state;
  EXPECT_NE(runner.view().last_error.find("403"), std::string::npos) << runner.view().last_error;
  EXPECT_TRUE(receiver.received().empty());
}

TEST(WebhookProxyTest, AProxyIsUsedOnlyIfItIsTrustedAndTheAddressInTheUrlIsCheckedAllTheSame) {
  const auto refusal = [](sinks::WebhookSettings settings) {
    asio::io_context core;
    settings.secrets = {kNewSecret};
    const auto clock = SystemClock();
    const auto sink = sinks::open_webhook("ops", settings, core.get_executor(), core.get_executor(), clock);
    return sink ? std::string("opened") : sink.error().message;
  };
  sinks::WebhookSettings settings;
  settings.url = "https://example.org/hook";
  settings.proxy = "http://proxy.example:3128";
  EXPECT_NE(refusal(settings).find("`proxy_trusted: true`"), std::string::npos);
  settings.proxy_trusted = true;
  EXPECT_EQ(refusal(settings), "opened");
  settings.url = "https://169.254.169.254/hook";
  EXPECT_NE(refusal(settings).find("169.254.169.254 is link-local"), std::string::npos);
  settings.url = "https://[::1]/hook";
  EXPECT_NE(refusal(settings).find("::1 is loopback"), std::string::npos);
  settings.url = "https://example.org/hook";
  settings.proxy = "socks5://proxy.example:1080";
  EXPECT_NE(refusal(settings).find("http://host:port"), std::string::npos);
}

TEST(WebhookRotationTest, AReceiverWithTheOldOrTheNewKeyCanVerifyEachCall) {
  HttpReceiver receiver({HttpScripted{200, {}, 20}});
  auto settings = hook_settings(receiver);
  settings.secrets = {kOldSecret};
  settings.max_in_flight = 4;
  RelayRunner runner(hook(settings));
  std::atomic<bool> stop = false;
  std::atomic<int> added = 0;
  std::thread load([&] {
    while (!stop && added < 5'000) {
      runner.add(sample_stored(++added));
      const int sent = added;
      eventually([&] { return stop || runner.view().delivered > sent - 8; });
    }
  });
  const auto more = [&](int events) {
    const auto from = runner.view().delivered;
    ASSERT_TRUE(eventually([&] { return runner.view().delivered >= from + events; })) << runner.view().last_error;
  };
  more(20);
  ASSERT_TRUE(runner.use_secrets({kNewSecret, kOldSecret}));
  const auto both = receiver.received().size();  // from here on the receiver may have the one or the other
  more(20);
  const auto switched = receiver.received().size();
  ASSERT_TRUE(runner.use_secrets({kNewSecret}));
  more(20);
  EXPECT_FALSE(runner.use_secrets({"short"})) << "the former keys stay in use";
  more(20);
  stop = true;
  load.join();
  const auto requests = receiver.received();
  for (std::size_t i = 0; i < requests.size(); ++i) {
    if (i < switched) {
      EXPECT_TRUE(verifies(requests[i], kOldSecret)) << i << ": a receiver that has the old key";
    }
    if (i >= both) {
      EXPECT_TRUE(verifies(requests[i], kNewKey)) << i << ": a receiver that has the new key";
    }
  }
  EXPECT_FALSE(verifies(requests.back(), kOldSecret));
  EXPECT_EQ(runner.view().last_error, "");
}

TEST(WebhookRotationTest, NewKeysAreReportedInUseOnlyWhenNoCallWithFormerOnesIsUnderWay) {
  HttpReceiver receiver({HttpScripted{200, {}, 1'500}});
  auto settings = hook_settings(receiver);
  settings.secrets = {kOldSecret};
  RelayRunner runner(hook(settings));
  runner.add(sample_stored(1));
  ASSERT_TRUE(eventually([&] { return receiver.received().size() == 1; }));
  EXPECT_EQ(runner.view().delivered, 0);
  ASSERT_TRUE(runner.use_secrets({kNewSecret, kOldSecret}));
  EXPECT_EQ(runner.view().in_flight + (1 - runner.view().delivered), 0) << "the call with the old key alone has ended";
}

}  // namespace
}  // namespace driftd::test
