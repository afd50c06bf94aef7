// SPDX-License-Identifier: Apache-2.0
// A connection that somebody must agree to, shared by requests over HTTP/2: the API server speaks it.
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
  /// So many at once; how each ended.
  std::vector<std::string> ask(http::MultiClient& wire) {
    for (int i = 0; i < kAtOnce; ++i) wire.start(call, version());
    std::vector<std::string> out;
    while (wire.in_flight() > 0) {
      for (const auto& ended : wire.run(call, http::MultiClient::Steady::time_point::max())) {
        out.push_back(ended.failure ? ended.failure->what() : std::to_string(ended.response.status));
      }
    }
    return out;
  }
};

TEST_F(K8sConnection, ThatWasNotAgreedToCarriesNoOtherRequest) {
  int made = 0;
  bool agrees = false;
  http::Options options;
  options.http2 = true;
  options.tls.ca_file = kube().ca_file();
  options.on_connection = [&](sdk::Call&) {
    ++made;
    if (!agrees) throw sdk::Failure(DRIFTD_UNAVAILABLE, "nobody knows who answers");
  };
  http::MultiClient wire(options);
  for (int i = 0; i < 10; ++i) {  // a server that is quick answered the others within the step that refused the first
    EXPECT_THAT(ask(wire), AllOf(SizeIs(kAtOnce), Each("nobody knows who answers")))
        << "asked unasked, or kept: round " << i;
  }
  agrees = true;
  const int before = made;
  EXPECT_THAT(ask(wire), AllOf(SizeIs(kAtOnce), Each("200")));
  EXPECT_EQ(made, before + 1) << "they share one";
}

TEST_F(K8sConnection, ThatIsRefusedLeavesWhatGoesOverAnotherAlone) {
  constexpr int kShared = 100;  // as many as libcurl sends over one
  bool agrees = true;
  http::Options options;
  options.http2 = true;
  options.tls.ca_file = kube().ca_file();
  options.on_connection = [&](sdk::Call&) {
    if (!agrees) throw sdk::Failure(DRIFTD_UNAVAILABLE, "nobody knows who answers");
  };
  http::MultiClient wire(options);
  const std::string space = fresh_namespace();
  int open = 0, told = 0;
  for (int i = 0; i < kShared; ++i) {
    http::Request request = version();
    request.url = kube().server() + "/api/v1/namespaces/" + space + "/configmaps?watch=1";
    request.on_body = [&](std::string_view piece) {
      ++(piece.empty() ? open : told);
      wire.wake();
    };
    wire.start(call, std::move(request));
  }
  const auto within = http::MultiClient::Steady::now() + std::chrono::seconds(20);
  while (open < kShared && http::MultiClient::Steady::now() < within)
    ASSERT_TRUE(wire.run(call, within).empty()) << "a watch ended";
  ASSERT_EQ(open, kShared);
  agrees = false;
  wire.start(call, version());
  const auto ended = wire.run(call, http::MultiClient::Steady::time_point::max());
  ASSERT_THAT(ended, SizeIs(1));
  EXPECT_STREQ(ended.front().failure.value().what(), "nobody knows who answers");
  EXPECT_EQ(wire.in_flight(), kShared);
  told = 0;
  kube().create("/api/v1/namespaces/" + space + "/configmaps", {{"metadata", {{"name", "seen"}}}});
  while (told < kShared && http::MultiClient::Steady::now() < within)
    ASSERT_TRUE(wire.run(call, within).empty()) << "a watch ended";
  EXPECT_GE(told, kShared);
}

}  // namespace
}  // namespace driftd::test
