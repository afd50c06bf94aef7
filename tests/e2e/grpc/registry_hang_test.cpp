// SPDX-License-Identifier: Apache-2.0
// A backend whose server never answers holds up no call that changes the registry, and no reload.
#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "registry_world.hpp"

namespace driftd::test {
namespace {

using grpc::StatusCode;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;

constexpr milliseconds kAnswer{5'000};  // the promise is 2.5 s; a busy machine gets as much again

/// A server whose kernel accepts connections, and which never reads or writes.
class DeafServer {
 public:
  DeafServer() : listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* any = reinterpret_cast<sockaddr*>(&address);
    if (::bind(listener_, any, size) != 0 || ::listen(listener_, 64) != 0 || ::getsockname(listener_, any, &size) != 0)
      throw std::runtime_error("no listening socket");
    port_ = ntohs(address.sin_port);
  }
  ~DeafServer() { ::close(listener_); }
  DeafServer(const DeafServer&) = delete;
  DeafServer& operator=(const DeafServer&) = delete;
  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }
  /// True once a client is connected, and waits.
  bool called() const {
    pollfd waiting{listener_, POLLIN, 0};
    return ::poll(&waiting, 1, 0) == 1;
  }

 private:
  int listener_, port_ = 0;
};

/// Returns how long a call takes.
template <class Call>
milliseconds time_of(Call call) {
  const auto start = std::chrono::steady_clock::now();
  call();
  return std::chrono::duration_cast<milliseconds>(std::chrono::steady_clock::now() - start);
}

class GrpcRegistryHang : public GrpcRegistry {
 protected:
  v1::BackendDefinition hanging(const std::string& team) {
    auto out = redis("deaf", "password");
    out.set_settings_json(nlohmann::json{{"address", deaf_.address()}, {"call_timeout_ms", 20000}}.dump());
    (*out.mutable_labels())["team"] = team;
    out.set_options_json(R"({"interval":"100ms"})");
    return out;
  }
  DeafServer deaf_;
};

TEST_F(GrpcRegistryHang, ItsChangeIsMadeLaterAndNobodyWaitsForIt) {
  secret("password", "p");
  Agent agent = registrar();
  start(agent);
  ASSERT_TRUE(add(hanging("a")).ok());
  ASSERT_TRUE(eventually([&] { return deaf_.called(); }, seconds(30))) << agent.log();

  Changed changed, other, again;
  EXPECT_LT(time_of([&] { changed = update(hanging("b")); }), kAnswer);
  EXPECT_EQ(changed.code(), StatusCode::UNAVAILABLE) << changed.status.error_message();
  EXPECT_THAT(changed.status.error_message(), HasSubstr("as soon as its refresh in progress has ended"));
  EXPECT_LT(time_of([&] { other = add(terraform("more", topics_.path())); }), kAnswer);
  EXPECT_TRUE(other.ok()) << other.status.error_message();
  EXPECT_LT(time_of([&] { again = update(hanging("c")); }), kAnswer);
  EXPECT_EQ(again.code(), StatusCode::UNAVAILABLE) << "one change after the other";
  EXPECT_LT(time_of([&] { EXPECT_EQ(run({Agent::binary(), "reload", "--config", agent.config()}).code, 0); }), kAnswer);
  EXPECT_TRUE(agent.established({"more"}) || eventually([&] { return agent.established({"more"}); }, seconds(30)));

  ASSERT_TRUE(eventually([&] { return get("deaf")->metadata().at("team") == "b"; }, seconds(90))) << agent.log();
  EXPECT_TRUE(eventually([&] { return update(hanging("b")).ok(); }, seconds(60))) << "it is so already";
  EXPECT_EQ(agent.stop(), 0);
}

TEST_F(GrpcRegistryHang, ItCanBeDeleted) {
  secret("password", "p");
  Agent agent = registrar();
  start(agent);
  ASSERT_TRUE(add(hanging("a")).ok());
  ASSERT_TRUE(eventually([&] { return deaf_.called(); }, seconds(30))) << agent.log();
  Changed gone;
  EXPECT_LT(time_of([&] { gone = remove("deaf"); }), kAnswer);
  EXPECT_TRUE(gone.ok() || gone.code() == StatusCode::UNAVAILABLE) << gone.status.error_message();
  EXPECT_TRUE(eventually([&] { return !get("deaf").has_value(); }, seconds(30))) << agent.log();
}

}  // namespace
}  // namespace driftd::test
