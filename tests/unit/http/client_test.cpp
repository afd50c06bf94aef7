// SPDX-License-Identifier: Apache-2.0
#include "http/client.hpp"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "world.hpp"

namespace driftd::http {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using testing::Hosted;
using ::testing::Not;
using testing::Server;

sdk::Failure failure(const std::function<void()>& of) {
  try {
    of();
  } catch (const sdk::Failure& caught) {
    return caught;
  }
  ADD_FAILURE() << "nothing failed";
  return {DRIFTD_INTERNAL, ""};
}

struct HttpClient : ::testing::Test {
  Hosted hosted;
  static const Server& one_for_all() {
    static const Server server;  // it keeps nothing
    return server;
  }
  const Server& server = one_for_all();
  sdk::Call call{hosted.handle()};
  Client client{Options{}};

  Response get(const std::string& path) { return client.send(call, {server.url(path)}); }
};

TEST_F(HttpClient, SendsMethodHeadersAndBodyAndGivesTheAnswer) {
  Request request{server.url("/echo?x=1"), "PUT", {"Authorization: Bearer abc", "X-Empty;"}, "body"};
  const Response response = client.send(call, request);
  const json seen = json::parse(response.body);
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.sent_ns, 42);
  EXPECT_EQ(response.header("x-twice"), "two");
  EXPECT_EQ(seen["method"], "PUT");
  EXPECT_EQ(seen["path"], "/echo?x=1");
  EXPECT_EQ(seen["body"], "body");
  EXPECT_EQ(seen["headers"]["authorization"], "Bearer abc");
  EXPECT_FALSE(seen["headers"].contains("expect"));
}

TEST_F(HttpClient, KeepsItsConnection) {
  const json first = json::parse(get("/echo").body), second = json::parse(get("/echo").body);
  EXPECT_EQ(first["port"], second["port"]);
}

TEST_F(HttpClient, SaysOfEachNewConnectionBeforeAnythingIsAskedOverIt) {
  int made = 0;
  bool refuse = false;
  Options options;
  options.on_connection = [&](sdk::Call& of) {
    ++made;
    Client other{Options{}};  // it may ask elsewhere meanwhile
    EXPECT_EQ(other.send(of, {server.url("/echo")}).status, 200);
    if (refuse) throw sdk::Failure(DRIFTD_UNAVAILABLE, "somebody else answers");
  };
  Client witnessed{options};
  EXPECT_EQ(witnessed.send(call, {server.url("/echo")}).status, 200);
  EXPECT_EQ(witnessed.send(call, {server.url("/echo")}).status, 200);
  EXPECT_EQ(made, 1) << "the second went over the same";
  refuse = true;
  Client refused{options};
  Request request{server.url("/lines")};
  request.on_body = [](std::string_view) { ADD_FAILURE() << "something was handed out"; };
  EXPECT_STREQ(failure([&] { refused.send(call, request); }).what(), "somebody else answers");
}

TEST_F(HttpClient, LeavesTheMeaningOfAStatusToItsCallerAndTellsWhenToComeAgain) {
  const Response response = get("/status/429");
  EXPECT_EQ(response.status, 429);
  EXPECT_EQ(response.retry_after_ms, 7000);
  EXPECT_EQ(response.body, "so it is");
  const sdk::Failure told = failure_of(response, name_of({server.url("/status/429?token=hunter2")}), "slow down");
  EXPECT_EQ(told.code, DRIFTD_THROTTLED);
  EXPECT_EQ(told.retry_after_ms, 7000);
  EXPECT_EQ(std::string(told.what()), "GET " + server.url("/status/429") + ": HTTP status 429: slow down");
}

TEST_F(HttpClient, UnpacksGzipUpToTheLimit) {
  EXPECT_EQ(get("/gzip").body, std::string(1'000'000, 'a'));
  Request small{server.url("/gzip")};
  small.max_body = 100'000;
  const auto told = failure([&] { client.send(call, small); });
  EXPECT_EQ(told.code, DRIFTD_BUDGET);
  EXPECT_THAT(told.what(), HasSubstr("larger than 100000 bytes"));
}

TEST_F(HttpClient, HandsAStreamOverAsItComes) {
  std::string got;
  int begun = 0;
  Request request{server.url("/lines")};
  request.on_body = [&](std::string_view piece) {
    begun += piece.empty() ? 1 : 0;
    got += piece;
  };
  const Response response = client.send(call, request);
  EXPECT_EQ(got, "one\ntwo\n");
  EXPECT_EQ(begun, 1);
  EXPECT_EQ(response.body, "");
}

TEST_F(HttpClient, KeepsTheBodyOfAnErrorWhereTheStreamWasWanted) {
  Request request{server.url("/status/410")};
  request.on_body = [&](std::string_view) { FAIL(); };
  EXPECT_EQ(client.send(call, request).body, "so it is");
}

TEST_F(HttpClient, AnExceptionOfTheStreamComesOut) {
  Request request{server.url("/endless")};
  request.on_body = [](std::string_view) { throw sdk::Failure(DRIFTD_CONFLICT, "enough"); };
  EXPECT_EQ(failure([&] { client.send(call, request); }).code, DRIFTD_CONFLICT);
  EXPECT_EQ(get("/echo").status, 200);
}

TEST_F(HttpClient, AnAnswerThatIsCutIsUnavailable) {
  EXPECT_EQ(failure([&] { get("/cut"); }).code, DRIFTD_UNAVAILABLE);
}

TEST_F(HttpClient, ATimeOutOfItsOwnIsUnavailableAndNamesNoQuery) {
  Request request{server.url("/silent?token=hunter2")};
  request.timeout = std::chrono::milliseconds(100);
  const auto told = failure([&] { client.send(call, request); });
  EXPECT_EQ(told.code, DRIFTD_UNAVAILABLE);
  EXPECT_THAT(told.what(), Not(HasSubstr("hunter2")));
}

TEST_F(HttpClient, TheDeadlineOfTheCallEndsAWait) {
  Hosted short_lived(std::chrono::milliseconds(100));
  sdk::Call hurried(short_lived.handle());
  const auto told = failure([&] { client.send(hurried, {server.url("/silent")}); });
  EXPECT_EQ(told.code, DRIFTD_DEADLINE);
  EXPECT_THAT(told.what(), HasSubstr("/silent"));
}

TEST_F(HttpClient, CancelEndsAWaitAtOnce) {
  Request request{server.url("/endless")};
  request.on_body = [&](std::string_view piece) {
    if (!piece.empty()) hosted.cancel();
  };
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(failure([&] { client.send(call, request); }).code, DRIFTD_CANCELLED);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
}

TEST_F(HttpClient, ARedirectIsAnAnswerUnlessItIsAllowed) {
  EXPECT_EQ(get("/to//echo").status, 302);
  Request request{server.url("/to//echo")};
  request.redirects = 1;
  EXPECT_EQ(client.send(call, request).status, 200);
  request.url = server.url("/to//to//echo");
  EXPECT_EQ(client.send(call, request).status, 302) << "one, not two";
}

TEST_F(HttpClient, ARedirectToAnotherHostIsRefused) {
  Request request{server.url("/to/http://localhost:" + std::to_string(server.port()) + "/echo")};
  request.redirects = 3;
  EXPECT_EQ(failure([&] { client.send(call, request); }).code, DRIFTD_INVALID);
}

TEST_F(HttpClient, RefusesUserInUrlOtherProtocolsAndBrokenHeaders) {
  for (const char* url : {"http://me:pw@127.0.0.1/", "file:///etc/passwd", "", "http://"}) {
    const auto told = failure([&] { client.send(call, {url}); });
    EXPECT_EQ(told.code, DRIFTD_INVALID) << url << told.what();
    EXPECT_THAT(told.what(), Not(HasSubstr("pw")));
  }
  EXPECT_EQ(failure([&] { client.send(call, {server.url("/echo"), "GET", {"A: b\r\nC: d"}}); }).code, DRIFTD_INVALID);
}

TEST_F(HttpClient, NobodyThereIsUnavailable) {
  const std::string url = "http://127.0.0.1:" + std::to_string(test::free_port()) + "/";
  EXPECT_EQ(failure([&] { client.send(call, {url}); }).code, DRIFTD_UNAVAILABLE);
}

TEST_F(HttpClient, TheEnvironmentHasNoSay) {
  ::setenv("http_proxy", "http://127.0.0.1:1", 1);
  EXPECT_EQ(get("/echo").status, 200);
  ::unsetenv("http_proxy");
}

TEST_F(HttpClient, SeveralRequestsRunAtOnce) {
  MultiClient wire{Options{}};
  std::string lines;
  Request endless{server.url("/endless")};
  endless.on_body = [&](std::string_view piece) { lines += piece; };
  const auto first = wire.start(call, endless);
  const auto second = wire.start(call, {server.url("/echo")});
  const auto ended = wire.run(call, std::chrono::steady_clock::now() + std::chrono::seconds(10));
  ASSERT_EQ(ended.size(), 1u);
  EXPECT_EQ(ended[0].id, second);
  EXPECT_TRUE(test::eventually([&] {
    wire.run(call, std::chrono::steady_clock::now() + std::chrono::milliseconds(20));
    return lines == "one\ntwo\n";
  }));
  wire.abort(first);
  EXPECT_EQ(wire.in_flight(), 0u);
}

TEST_F(HttpClient, ANudgeEndsARunThoughNothingHasEnded) {
  MultiClient wire{Options{}};
  Request endless{server.url("/endless")};
  endless.on_body = [&](std::string_view piece) {
    if (!piece.empty()) wire.wake();
  };
  wire.start(call, endless);
  EXPECT_TRUE(wire.run(call, MultiClient::Steady::time_point::max()).empty());
  EXPECT_EQ(wire.in_flight(), 1u);
}

TEST(HttpStatus, SaysWhatTheSchedulerMustDo) {
  const std::map<int, driftd_status> expected = {
      {200, DRIFTD_OK},        {400, DRIFTD_INVALID},     {401, DRIFTD_UNAUTHENTICATED}, {403, DRIFTD_DENIED},
      {404, DRIFTD_NOT_FOUND}, {409, DRIFTD_CONFLICT},    {410, DRIFTD_CURSOR_EXPIRED},  {412, DRIFTD_CONFLICT},
      {429, DRIFTD_THROTTLED}, {500, DRIFTD_UNAVAILABLE}, {501, DRIFTD_UNSUPPORTED},     {503, DRIFTD_UNAVAILABLE},
      {302, DRIFTD_CORRUPT},   {408, DRIFTD_UNAVAILABLE}};
  for (const auto& [status, code] : expected) EXPECT_EQ(code_of(status), code) << status;
}

TEST(HttpText, EscapesAllButUnreserved) { EXPECT_EQ(escape("a-b_c.~/ ?&=é"), "a-b_c.~%2F%20%3F%26%3D%C3%A9"); }

}  // namespace
}  // namespace driftd::http
