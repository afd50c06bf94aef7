// SPDX-License-Identifier: Apache-2.0
// Who may call: TLS, client certificates, tokens; and what the registry shows.
#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <algorithm>
#include <filesystem>

#include "support/certificates.hpp"
#include "world.hpp"

namespace driftd::test {
namespace {

using testing::HasSubstr;

grpc::Status list(const std::shared_ptr<grpc::Channel>& channel, const std::string& token = {}) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
  if (!token.empty()) context.AddMetadata("authorization", "Bearer " + token);
  v1::ListSubscriptionsResponse ignored;
  return v1::BackendEvents::NewStub(channel)->ListSubscriptions(&context, {}, &ignored);
}

grpc::Status create(const std::shared_ptr<grpc::Channel>& channel, const std::string& token = {}) {
  grpc::ClientContext context;
  if (!token.empty()) context.AddMetadata("authorization", "Bearer " + token);
  v1::CreateSubscriptionRequest request;
  v1::SubscriberStatus ignored;
  request.mutable_subscription()->set_subscriber_id("orders");
  return v1::BackendEvents::NewStub(channel)->CreateSubscription(&context, request, &ignored);
}

std::shared_ptr<grpc::Channel> tls_channel(const std::string& port, const Certificates& authority,
                                           const Certificates* client = nullptr, const std::string& name = {}) {
  grpc::SslCredentialsOptions options;
  options.pem_root_certs = read_file(authority.ca());
  if (client != nullptr) {
    options.pem_cert_chain = read_file(client->certificate(name));
    options.pem_private_key = read_file(client->key(name));
  }
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return grpc::CreateCustomChannel("localhost:" + port, grpc::SslCredentials(options), arguments);
}

class GrpcAccess : public GrpcLine {
 protected:
  GrpcAccess() { authority_.issue("agent", "localhost", "DNS:localhost,IP:127.0.0.1"); }
  std::string tls(const std::string& more) const {
    return "  listen: \"127.0.0.1:" + port() + "\"\n  tls: { cert: " + authority_.certificate("agent") +
           ", key: " + authority_.key("agent") + more + " }\n";
  }
  Certificates authority_;
};

TEST_F(GrpcAccess, OnlyCertificatesOfTheAuthorityWithRightsGetIn) {
  Certificates stranger;
  authority_.issue("runner", "order-runner", "DNS:order-runner");
  authority_.issue("operator", "operator", "DNS:ops.example");
  authority_.issue("nobody", "nobody", "DNS:nobody.example");
  stranger.issue("runner", "order-runner", "DNS:order-runner");
  Agent agent =
      this->agent(tls(", client_ca: " + authority_.ca()) + "  clients: { \"order-*\": read, ops.example: decide }\n");
  start(agent);
  EXPECT_TRUE(list(tls_channel(port(), authority_, &authority_, "runner")).ok()) << agent.log();
  EXPECT_EQ(create(tls_channel(port(), authority_, &authority_, "runner")).error_code(),
            grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_TRUE(create(tls_channel(port(), authority_, &authority_, "operator")).ok());
  const grpc::Status other = list(tls_channel(port(), authority_, &authority_, "nobody"));
  EXPECT_EQ(other.error_code(), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_THAT(other.error_message(), HasSubstr("grpc.clients"));
  EXPECT_EQ(list(tls_channel(port(), authority_, &stranger, "runner")).error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(list(tls_channel(port(), authority_)).error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(list(tls_channel(port(), stranger, &authority_, "runner")).error_code(), grpc::StatusCode::UNAVAILABLE);
}

TEST_F(GrpcAccess, ANewServerCertificateIsUsedWithoutARestart) {
  Certificates next;
  next.issue("agent", "localhost", "DNS:localhost");
  const std::string token = dir_.write("token", "0123456789abcdef0123");
  Agent agent = this->agent(tls("") + "  tokens: [{ name: ci, token: \"${file:" + token + "}\" }]\n");
  start(agent);
  ASSERT_TRUE(list(tls_channel(port(), authority_), "0123456789abcdef0123").ok()) << agent.log();
  for (const auto& [from, to] : {std::pair(next.certificate("agent"), authority_.certificate("agent")),
                                 std::pair(next.key("agent"), authority_.key("agent"))}) {
    std::filesystem::copy_file(from, to + ".next", std::filesystem::copy_options::overwrite_existing);
    std::filesystem::rename(to + ".next", to);
  }
  EXPECT_TRUE(eventually([&] { return list(tls_channel(port(), next), "0123456789abcdef0123").ok(); })) << agent.log();
}

TEST_F(GrpcAccess, ATokenGivesItsRightsAndNothingElseGivesAny) {
  const std::string reader = dir_.write("reader", "0123456789abcdef0123"),
                    decider = dir_.write("decider", "fedcba98765432100123");
  Agent agent = this->agent("  listen: \"127.0.0.1:" + port() +
                            "\"\n  allow_plain_loopback: true\n  tokens:\n    - { name: ci, token: \"${file:" + reader +
                            "}\" }\n    - { name: ops, rights: decide, token: \"${file:" + decider + "}\" }\n");
  start(agent);
  const auto channel = grpc::CreateChannel("127.0.0.1:" + port(), grpc::InsecureChannelCredentials());
  EXPECT_EQ(list(channel).error_code(), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_EQ(list(channel, "0123456789abcdef0124").error_code(), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_TRUE(list(channel, "0123456789abcdef0123").ok()) << agent.log();
  EXPECT_EQ(create(channel, "0123456789abcdef0123").error_code(), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_TRUE(create(channel, "fedcba98765432100123").ok());
  const auto audit = agent.cli({"audit"}).out;
  EXPECT_THAT(audit, HasSubstr("token:ops"));
  EXPECT_THAT(audit, HasSubstr("subscribe"));
}

TEST_F(GrpcAccess, ASectionThatIsUnsafeOrWrongIsRefusedBeforeAnythingRuns) {
  const auto refused = [this](const std::string& body) {
    Agent agent = this->agent(body);
    const Output checked = run({Agent::binary(), "validate", "--config", agent.config()});
    EXPECT_NE(checked.code, 0) << body;
    return checked.out + checked.err;
  };
  EXPECT_THAT(refused("  listen: \"0.0.0.0:7481\"\n"), HasSubstr("without grpc.tls"));
  EXPECT_THAT(refused("  listen: \"0.0.0.0:7481\"\n  allow_plain_loopback: true\n"), HasSubstr("without grpc.tls"));
  EXPECT_THAT(refused("  listen: \"127.0.0.1:7481\"\n  allow_plain_loopback: true\n"), HasSubstr("nobody could use"));
  EXPECT_THAT(refused(tls("")), HasSubstr("nobody could use"));
  EXPECT_THAT(refused("  tls: { cert: nowhere.pem, key: nowhere.key }\n"), HasSubstr("grpc.tls.cert"));
  EXPECT_THAT(refused("  tls: { cert: " + authority_.certificate("agent") + ", key: " + authority_.ca() + " }\n"),
              HasSubstr("grpc.tls.key"));
  EXPECT_THAT(refused("  tokens: [{ name: ci, token: 0123456789abcdef0123 }]\n"), HasSubstr("not a reference"));
  EXPECT_THAT(refused("  clients: { a: write }\n"), HasSubstr("unknown rights"));
  EXPECT_THAT(refused("  sockett: x\n"), HasSubstr("sockett"));
}

TEST_F(GrpcAccess, BackendsAreListedWithoutSecrets) {
  Agent agent = this->agent();
  start(agent);
  const auto stub = v1::BackendRegistry::NewStub(channel());
  grpc::ClientContext context, again, missing;
  v1::GetBackendRequest request;
  v1::Backend backend;
  request.set_name("platform");
  ASSERT_TRUE(stub->GetBackend(&context, request, &backend).ok());
  EXPECT_EQ(backend.type(), "terraform");
  EXPECT_EQ(backend.metadata().at("team"), "orders");
  EXPECT_EQ(nlohmann::json::parse(backend.config_json())["terraform"]["path"], topics_.path());
  v1::ListBackendsResponse listed;
  ASSERT_TRUE(stub->ListBackends(&again, {}, &listed).ok());
  ASSERT_EQ(listed.backends_size(), 1);
  EXPECT_EQ(listed.backends(0).SerializeAsString().size(), backend.SerializeAsString().size());
  request.set_name("no-such-backend");
  EXPECT_EQ(stub->GetBackend(&missing, request, &backend).error_code(), grpc::StatusCode::NOT_FOUND);
}

TEST_F(GrpcAccess, TheSocketHasTheModeOfTheConfiguration) {
  Agent agent = this->agent("  socket_mode: \"0600\"\n");
  start(agent);
  EXPECT_EQ(std::filesystem::status(socket()).permissions(), std::filesystem::perms(0600));
  EXPECT_EQ(agent.stop(), 0);
  EXPECT_FALSE(std::filesystem::exists(socket()));
}

/// Connects from this loopback address. Returns the socket; the agent may have closed it.
int connect_from(const std::string& source, int port) {
  const int out = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in from{}, to{};
  from.sin_family = to.sin_family = AF_INET;
  ::inet_pton(AF_INET, source.c_str(), &from.sin_addr);
  ::inet_pton(AF_INET, "127.0.0.1", &to.sin_addr);
  to.sin_port = htons(static_cast<std::uint16_t>(port));
  EXPECT_EQ(::bind(out, reinterpret_cast<const sockaddr*>(&from), sizeof from), 0);
  EXPECT_EQ(::connect(out, reinterpret_cast<const sockaddr*>(&to), sizeof to), 0);
  return out;
}

/// Returns how many of them the other side has closed.
std::size_t closed_of(const std::vector<int>& sockets) {
  return static_cast<std::size_t>(std::count_if(sockets.begin(), sockets.end(), [](int socket) {
    pollfd one{socket, POLLRDHUP, 0};
    return ::poll(&one, 1, 0) == 1 && (one.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
  }));
}

/// Without a maximum one client takes all descriptors of the agent.
TEST_F(GrpcAccess, TcpConnectionsHaveAMaximumAlsoForOneAddressAndOthersGetIn) {
  const std::string token = dir_.write("token", "0123456789abcdef0123");
  Agent agent = this->agent(tls("") + "  tokens: [{ name: ci, token: \"${file:" + token + "}\" }]\n");
  start(agent);
  std::vector<int> sockets;
  const auto crowd = [&](const std::string& source) {
    for (int i = 0; i < 80; ++i) sockets.push_back(connect_from(source, port_));
  };
  crowd("127.0.0.2");
  EXPECT_TRUE(eventually([&] { return closed_of(sockets) == 16; })) << closed_of(sockets);
  EXPECT_TRUE(list(tls_channel(port(), authority_), "0123456789abcdef0123").ok()) << "one address keeps nobody out";
  for (const char* source : {"127.0.0.3", "127.0.0.4", "127.0.0.5", "127.0.0.6"}) crowd(source);
  EXPECT_TRUE(eventually([&] { return closed_of(sockets) >= 400 - 256; })) << closed_of(sockets);
  EXPECT_THAT(agent.log(), HasSubstr("of this address are open, its maximum"));
  for (const int socket : sockets) ::close(socket);
  EXPECT_TRUE(eventually([&] { return list(tls_channel(port(), authority_), "0123456789abcdef0123").ok(); }))
      << "who leaves makes room";
}

}  // namespace
}  // namespace driftd::test
