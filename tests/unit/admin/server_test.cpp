// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>
#include <atomic>

#include "admin/link_server.hpp"
#include "unit/admin/fake_agent.hpp"

namespace driftd::test {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

TEST(Socket, HasMode0660AndIsRemovedOnStop) {
  FakeAgent agent;
  struct stat info {};
  ASSERT_EQ(::stat(agent.socket().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0660u);
  agent.stop();
  EXPECT_NE(::stat(agent.socket().c_str(), &info), 0);
  agent.stop();
}

TEST(Socket, OfALivingAgentIsNotTaken) {
  FakeAgent agent;
  admin::ServerSettings settings;
  settings.socket = agent.socket();
  FakeControl control;
  FakeReader reader;
  const auto second =
      admin::Server::open(agent.io.get_executor(), settings, {control, reader, agent.metrics, FakePlugins::scan});
  ASSERT_FALSE(second.has_value());
  EXPECT_EQ(second.error().code, Code::conflict);
  EXPECT_THAT(agent.curl({kHost + "/livez"}).out, HasSubstr("ok"));
}

TEST(Socket, OtherUsersAreRefusedUnlessListed) {
  if (::getuid() != 0) GTEST_SKIP() << "LOUD: only root can become another user, whom the socket refuses is not tested";
  for (const bool listed : {false, true}) {
    admin::ServerSettings settings;
    if (listed) settings.policy.uids = {65534};
    FakeAgent agent(settings);
    if (!listed) {
      ASSERT_EQ(::chmod(agent.socket().c_str(), 0666), 0);  // opens the socket, as a configured group would
    }
    const std::string log = agent.folder.write("log", "");
    ASSERT_EQ(::chmod(log.c_str(), 0666), 0);
    Child curl({"curl", "-s", "-w", "%{http_code}", "--unix-socket", agent.socket(), kHost + "/v1/status"},
               {log, {}, "nobody"});
    ASSERT_EQ(curl.wait(std::chrono::seconds(20)), 0);
    EXPECT_THAT(read_file(log), EndsWith(listed ? "200" : "403"));
    EXPECT_EQ(read_file(log).find("user nobody may not use this agent's API") == std::string::npos, listed);
    EXPECT_TRUE(eventually([&] { return agent.audited().empty() == listed; }))
        << "a refused caller is in the audit log";
  }
}

TEST(Socket, AWorkerIsRefusedByItsPidWhateverItsUser) {
  std::atomic<int> asked = 0;
  std::atomic<bool> worker = false;
  admin::ServerSettings settings;
  settings.is_worker = [&](int pid) { return asked = pid, worker.load(); };
  FakeAgent agent(settings);
  EXPECT_THAT(agent.curl({kHost + "/v1/status"}).out, EndsWith("200"));
  EXPECT_GT(asked, 0);
  EXPECT_NE(asked, ::getpid()) << "the pid of the one who connected";
  worker = true;
  const std::string said = agent.curl({kHost + "/v1/status"}).out;
  EXPECT_THAT(said, HasSubstr("a plugin may not use the API of its agent"));
  EXPECT_THAT(said, EndsWith("403"));
}

TEST(Api, DriftsShowRedactedValuesAndExactNumbers) {
  FakeAgent agent;
  agent.reader()->open = {{pending_drift("d-1"), "cache"}};
  const auto out = agent.curl({kHost + "/v1/drifts?backend=ca%2Ache&status=pending&limit=5"}).out;
  EXPECT_THAT(out, HasSubstr(R"("new":"[REDACTED]","old":"[REDACTED]","path":"password")"));
  EXPECT_THAT(out, HasSubstr(R"("new":9223372036854775808)"));
  EXPECT_THAT(out, Not(HasSubstr("hmac")));
  EXPECT_EQ(agent.reader()->last_filter.backend, "ca*che");
  EXPECT_EQ(agent.reader()->last_filter.limit, 5);
}

TEST(Api, ResourcesShowRedactedBodies) {
  FakeAgent agent;
  const auto out = agent.curl({kHost + "/v1/resources"}).out;
  EXPECT_THAT(out, HasSubstr(R"("baseline":{"n":9223372036854775808,"password":"[REDACTED]"})"));
}

TEST(Api, DiscoveredBackendsAreListedWithReferencesAndWhatWasNotSeen) {
  FakeAgent agent;
  const auto out = agent.curl({kHost + "/v1/backends/cluster/discovered"}).out;
  EXPECT_THAT(out, HasSubstr(R"("complete":false)"));
  EXPECT_THAT(out, HasSubstr(R"("config":{"database":"orders"})"));
  EXPECT_THAT(out, HasSubstr(R"("credentials":{"password":"k8s:db/orders#password"})"));
  EXPECT_THAT(out, HasSubstr(R"("message":"may not see namespace b")"));
  EXPECT_THAT(out, EndsWith("200"));
  EXPECT_THAT(agent.curl({kHost + "/v1/backends/none/discovered"}).out, EndsWith("404"));
}

TEST(Api, DecisionCarriesThePeersNameAndReason) {
  FakeAgent agent;
  const auto out =
      agent.curl({"-d", R"({"reason":"planned","digest":"abcdef01"})", kHost + "/v1/drifts/d-1/approve"}).out;
  EXPECT_THAT(out, EndsWith("200"));
  ASSERT_EQ(agent.control()->decisions.size(), 1u);
  EXPECT_EQ(agent.control()->decisions[0].reason, "planned");
  EXPECT_EQ(agent.control()->decisions[0].digest, "abcdef01");
  EXPECT_EQ(agent.control()->decisions[0].actor, run({"id", "-un"}).out.substr(0, run({"id", "-un"}).out.size() - 1));
}

TEST(Api, FailuresCarryCodeMessageAndAFittingStatus) {
  FakeAgent agent;
  const std::pair<std::vector<std::string>, std::vector<std::string>> cases[] = {
      {{"-d", R"({"digest":"abcdef01"})", kHost + "/v1/drifts/d-gone/approve"}, {"not_found", "404"}},
      {{"-d", R"({"digest":"abcdef01"})", kHost + "/v1/drifts/d-stale/reject"}, {"conflict", "409"}},
      {{"-d", "{", kHost + "/v1/refresh"}, {"is not valid JSON", "400"}},
      {{"-d", R"({"ful":true})", kHost + "/v1/refresh"}, {"unknown member 'ful'", "400"}},
      {{"-d", R"({"resource":"role"})", kHost + "/v1/explain"}, {"KIND/ID", "400"}},
      {{kHost + "/v1/drifts?status=open"}, {"unknown drift status 'open'", "400"}},
      {{kHost + "/v1/drifts?limit=0"}, {"'limit' must be", "400"}},
      {{kHost + "/v1/%zz"}, {"malformed", "400"}},
      {{kHost + "/v1/nothing"}, {"there is no GET /v1/nothing", "404"}},
      {{"-X", "DELETE", kHost + "/v1/status"}, {"method DELETE", "501"}},
  };
  for (const auto& [request, expected] : cases) {
    const auto out = agent.curl(request).out;
    EXPECT_THAT(out, HasSubstr(R"({"error":{"code":)")) << request.back();
    EXPECT_THAT(out, HasSubstr(expected[0]));
    EXPECT_THAT(out, EndsWith(expected[1]));
  }
}

TEST(Api, BodyBeyondTheBoundIsRefused) {
  admin::ServerSettings settings;
  settings.max_body = 1000;
  FakeAgent agent(settings);
  const std::string file = agent.folder.write("big", std::string(5000, ' '));
  EXPECT_THAT(agent.curl({"--data-binary", "@" + file, kHost + "/v1/refresh"}).out, EndsWith("413"));
}

TEST(Api, WaitingForEventsReturnsAsSoonAsOneComes) {
  FakeAgent agent;
  const std::string log = agent.folder.file("log");
  Child curl({"curl", "-s", "--unix-socket", agent.socket(), kHost + "/v1/events?after=3&wait=30"}, {log, {}, ""});
  ASSERT_TRUE(eventually([&] { return agent.reader()->reads > 0; }));
  agent.reader()->append(4);
  ASSERT_EQ(curl.wait(std::chrono::seconds(10)), 0);
  EXPECT_THAT(read_file(log), HasSubstr(R"("seq":4)"));
}

TEST(Api, StopEndsARequestThatWaits) {
  FakeAgent agent;
  Child curl({"curl", "-s", "--unix-socket", agent.socket(), kHost + "/v1/events?after=3&wait=30"}, {});
  ASSERT_TRUE(eventually([&] { return agent.reader()->reads > 0; }));
  const auto began = std::chrono::steady_clock::now();
  agent.stop();
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(15));
  EXPECT_NE(curl.wait(std::chrono::seconds(10)), -1);
}

TEST(Port, ServesProbesAndMetricsOnly) {
  FakeAgent agent;
  EXPECT_EQ(run({"curl", "-s", agent.url("/livez")}).out, "ok\n");
  EXPECT_EQ(run({"curl", "-s", agent.url("/readyz")}).out, "ok\n");
  EXPECT_THAT(run({"curl", "-s", agent.url("/metrics")}).out, HasSubstr("prism_backend_up{backend=\"cache\"} 1"));
  EXPECT_EQ(run({"curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", agent.url("/v1/status")}).out, "404");
  EXPECT_EQ(run({"curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", "-d", "", agent.url("/v1/reload")}).out, "501");
}

TEST(Port, RefusesAForeignHostHeader) {
  FakeAgent agent;
  EXPECT_EQ(
      run({"curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", "-H", "Host: evil.example", agent.url("/metrics")})
          .out,
      "403");
}

TEST(Port, ReadyzSaysWhyNot) {
  FakeAgent agent;
  agent.control()->agent.ready = false;
  agent.control()->agent.not_ready_reason = "2 backends have no baseline yet";
  EXPECT_EQ(run({"curl", "-s", "-w", "%{http_code}", agent.url("/readyz")}).out,
            "2 backends have no baseline yet\n503");
}

TEST(Metrics, OfTheRfcArePresentAndPromtoolFindsNothing) {
  FakeAgent agent;
  agent.metrics.observe_refresh("cache", core::Metrics::Seconds(0.15), true);
  agent.metrics.drift_detected("cache", core::ChangeClass::credential);
  agent.metrics.event_published("cache", "credentials.rotated");
  agent.metrics.records("cache", 10, 9);
  agent.metrics.suppressed("cache", "standing", 2);
  agent.metrics.observe_delivery("ops", "delivered", core::Metrics::Seconds(0.01));
  agent.metrics.queue("store", 1, 100);
  const auto text = run({"curl", "-s", agent.url("/metrics")}).out;
  for (const char* line : {"prism_backend_refresh_total{backend=\"cache\"} 1",
                           "prism_backend_drift_detected_total{backend=\"cache\",type=\"credential\"} 1",
                           "prism_backend_event_published_total{backend=\"cache\",event=\"credentials.rotated\"} 1",
                           "prism_backend_state_refresh_duration_seconds{backend=\"cache\"} 0.15",
                           "prism_sink_events{sink=\"ops\",state=\"dead\"} 1"}) {
    EXPECT_THAT(text, HasSubstr(line));
  }
  const std::string file = agent.folder.write("metrics", text);
  const auto lint = run({"sh", "-c", "promtool check metrics < " + file});
  EXPECT_EQ(lint.code, 0) << lint.out << lint.err;
  EXPECT_EQ(lint.err + lint.out, "");
}

class NoLinks final : public core::LinkStore {
 public:
  Task<Status> add_links(std::vector<core::DecisionLink>) override { co_return Status{}; }
  Task<Result<std::optional<core::DecisionLink>>> find_link(std::string) override { co_return std::nullopt; }
};

TEST(Ports, AnErrorNamesTheSettingThatThePortIsFrom) {
  FakeControl control;
  FakeReader reader;
  NoLinks links;
  SystemClock clock;
  asio::io_context io;
  const auto open = [&](const std::string& listen) {
    admin::LinkServerSettings settings;
    settings.listen = listen;
    return admin::LinkServer::open(io.get_executor(), settings, {control, reader, links, clock});
  };
  const auto first = open("127.0.0.1:0");
  ASSERT_TRUE(first.has_value()) << first.error().message;
  const std::string taken = "127.0.0.1:" + std::to_string((*first)->port());
  const auto second = open(taken);
  ASSERT_FALSE(second.has_value());
  EXPECT_THAT(second.error().message, HasSubstr("cannot listen on " + taken + " (notifications.links.listen)"));
  const auto outside = open("0.0.0.0:0");
  ASSERT_FALSE(outside.has_value());
  EXPECT_THAT(outside.error().message, HasSubstr("(notifications.links.listen)"));
  admin::PrometheusMetrics metrics("x");
  admin::ServerSettings api;
  TempDir folder;
  api.socket = folder.file("s");
  api.listen = taken;
  const auto server = admin::Server::open(io.get_executor(), api, {control, reader, metrics, FakePlugins::scan});
  ASSERT_FALSE(server.has_value());
  EXPECT_THAT(server.error().message, HasSubstr("cannot listen on " + taken + " (admin.listen)"));
}

TEST(Metrics, OfABackendThatLeftEnd) {
  admin::PrometheusMetrics metrics("x");
  metrics.event_published("gone", "created");
  metrics.event_published("stays", "created");
  metrics.forget("gone");
  const auto text = metrics.render({}, {});
  EXPECT_THAT(text, Not(HasSubstr("gone")));
  EXPECT_THAT(text, HasSubstr("x_backend_event_published_total{backend=\"stays\",event=\"created\"} 1"));
}

}  // namespace
}  // namespace driftd::test
