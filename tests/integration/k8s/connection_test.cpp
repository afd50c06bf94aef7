// SPDX-License-Identifier: Apache-2.0
// The HTTP client against the API server, which speaks HTTP/2: requests share a connection, and a callback must accept
// each new connection before it carries one.
#include "cluster.hpp"
#include "http/client.hpp"
#include "unit/http/world.hpp"

namespace driftd::test {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::SizeIs;

struct K8sConnection : Cluster {
  http::testing::Hosted hosted;
  sdk::Call call{hosted.handle()};

  static http::Request version() {
    http::Request out{kube().server() + "/version"};
    out.headers = {"Authorization: Bearer " + kube().admin_token()};
    return out;
  }
  static constexpr int kAtOnce = 24;
  /// Sends kAtOnce requests at once. Returns the status or the failure of each.
  std::vector<std::string> ask(http::MultiClient& client) {
    for (int i = 0; i < kAtOnce; ++i) client.start(call, version());
    std::vector<std::string> out;
    while (client.in_flight() > 0) {
      for (const auto& ended : client.run(call, http::MultiClient::Steady::time_point::max())) {
        out.push_back(ended.failure ? ended.failure->what() : std::to_string(ended.response.status));
      }
    }
    return out;
  }
};

TEST_F(K8sConnection, ThatWasNotAgreedToCarriesNoOtherRequest) {
  int connections = 0;
  bool accepts = false;
  http::Options options;
  options.http2 = true;
  options.tls.ca_file = kube().ca_file();
  options.on_connection = [&](sdk::Call&) {
    ++connections;
    if (!accepts) throw sdk::Failure(DRIFTD_UNAVAILABLE, "nobody knows who answers");
  };
  http::MultiClient client(options);
  // ten rounds: a quick server could answer the others in the same step of the client that refuses the first
  for (int i = 0; i < 10; ++i) {
    EXPECT_THAT(ask(client), AllOf(SizeIs(kAtOnce), Each("nobody knows who answers")))
        << "a request went over a connection that was not accepted, in round " << i;
  }
  accepts = true;
  const int before = connections;
  EXPECT_THAT(ask(client), AllOf(SizeIs(kAtOnce), Each("200")));
  EXPECT_EQ(connections, before + 1) << "all requests share one connection";
}

TEST_F(K8sConnection, ThatIsRefusedLeavesWhatGoesOverAnotherAlone) {
  constexpr int kShared = 100;  // as many requests as libcurl sends over one connection
  bool accepts = true;
  http::Options options;
  options.http2 = true;
  options.tls.ca_file = kube().ca_file();
  options.on_connection = [&](sdk::Call&) {
    if (!accepts) throw sdk::Failure(DRIFTD_UNAVAILABLE, "nobody knows who answers");
  };
  http::MultiClient client(options);
  const std::string space = fresh_namespace();
  int open = 0, events = 0;
  for (int i = 0; i < kShared; ++i) {
    http::Request request = version();
    request.url = kube().server() + "/api/v1/namespaces/" + space + "/configmaps?watch=1";
    request.on_body = [&](std::string_view piece) {
      ++(piece.empty() ? open : events);  // empty: the head of the answer came
      client.wake();
    };
    client.start(call, std::move(request));
  }
  const auto within = http::MultiClient::Steady::now() + std::chrono::seconds(20);
  while (open < kShared && http::MultiClient::Steady::now() < within)
    ASSERT_TRUE(client.run(call, within).empty()) << "a watch ended";
  ASSERT_EQ(open, kShared);
  accepts = false;
  client.start(call, version());
  const auto ended = client.run(call, http::MultiClient::Steady::time_point::max());
  ASSERT_THAT(ended, SizeIs(1));
  EXPECT_STREQ(ended.front().failure.value().what(), "nobody knows who answers");
  EXPECT_EQ(client.in_flight(), kShared);
  events = 0;
  kube().create("/api/v1/namespaces/" + space + "/configmaps", {{"metadata", {{"name", "seen"}}}});
  while (events < kShared && http::MultiClient::Steady::now() < within)
    ASSERT_TRUE(client.run(call, within).empty()) << "a watch ended";
  EXPECT_GE(events, kShared);
}

}  // namespace
}  // namespace driftd::test
