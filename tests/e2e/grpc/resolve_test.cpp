// SPDX-License-Identifier: Apache-2.0
// The values behind references, from a real agent to real clients that may have them, and to no other.
#include <sys/stat.h>
#include <unistd.h>
#include <fstream>

#include "support/certificates.hpp"
#include "world.hpp"

namespace driftd::test {
namespace {

namespace fs = std::filesystem;
using grpc::StatusCode;
using std::chrono::seconds;
using testing::HasSubstr;
using testing::Not;

struct Reply {
  grpc::Status status;
  std::vector<std::string> values;
};

class GrpcResolve : public GrpcLine {
 protected:
  GrpcResolve() {
    authority_.issue("agent", "localhost", "DNS:localhost,IP:127.0.0.1");
    secret("cache", "file-canary-1");
    secret("other", "other-canary");
  }
  /// Writes a secret file the way that an atomic replacement does.
  void secret(const std::string& name, const std::string& text) const {
    dir_.write(name + ".new", text);
    fs::permissions(dir_.file(name + ".new"), fs::perms(0600));
    fs::rename(dir_.file(name + ".new"), dir_.file(name));
  }
  std::string reference(const std::string& name) const { return "${file:" + dir_.file(name) + "}"; }
  Agent agent(const std::string& resolve, const std::string& grpc = {}) const {
    const std::string nowhere = "address: \"127.0.0.1:1\", password: \"";
    return Agent(dir_,
                 "backends:\n  - name: cache\n    provider: redis\n    settings: { username: \"${env:CACHE_USER}\", " +
                     nowhere + reference("cache") + "\" }\n  - name: other\n    provider: redis\n    settings: { " +
                     nowhere + reference("other") +
                     "\" }\n  - name: apps\n    provider: redis\n    settings: { username: driftd, " + nowhere +
                     reference("cache") + "\" }\n    credentials: { username: app, password: \"" + reference("other") +
                     "\" }\ngrpc:\n  socket: " + socket() + "\n" + grpc + resolve,
                 {{"CACHE_USER", "env-canary"}});
  }
  static std::string mine(const std::string& backends = "cache", const std::string& more = {}) {
    return "resolve:\n  grants: [{ uid: " + std::to_string(::getuid()) + ", backends: [" + backends + "] }]\n" + more;
  }
  void up(Agent& agent, std::vector<std::string> wrapper = {}) const {
    agent.start(std::move(wrapper));
    ASSERT_TRUE(eventually([&] { return fs::exists(socket()) && agent.ask({"status"}).is_object(); }, seconds(60)))
        << agent.log();
  }
  static Reply ask_at(const std::shared_ptr<grpc::Channel>& channel, const std::vector<std::string>& references,
                      const std::string& backend = "cache", const std::string& token = {}) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + seconds(20));
    if (!token.empty()) context.AddMetadata("authorization", "Bearer " + token);
    v1::ResolveCredentialsRequest request;
    request.set_backend(backend);
    for (const auto& one : references) request.add_references(one);
    v1::ResolveCredentialsResponse answer;
    Reply out;
    out.status = v1::BackendCredentials::NewStub(channel)->ResolveCredentials(&context, request, &answer);
    for (int i = 0; i < answer.credentials_size(); ++i) {
      EXPECT_EQ(answer.credentials(i).reference(), references[static_cast<std::size_t>(i)]);
      out.values.push_back(answer.credentials(i).value());
    }
    return out;
  }
  Reply ask(const std::vector<std::string>& references, const std::string& backend = "cache") const {
    return ask_at(channel(), references, backend);
  }
  /// Sends a request to the HTTP API as curl does, and returns the body and the status after it.
  static std::string post(const Agent& agent, const nlohmann::json& body) {
    return run({"curl", "-s", "--unix-socket", agent.socket(), "-w", "%{http_code}", "-d", body.dump(),
                "http://driftd/v1/credentials/resolve"})
        .out;
  }
  /// Returns the lines of the audit log about requests that were answered, or refused.
  static int lines(const Agent& agent, bool answered) {
    int out = 0;
    for (const auto& row : agent.rows({"audit", "--limit", "1000"})) {
      if (row.value("verb", "") == "resolve" && row.value("outcome", "").empty() == answered) ++out;
    }
    return out;
  }
  std::string listen(const std::string& more) const { return "  listen: \"127.0.0.1:" + port() + "\"\n" + more; }
  std::string tls(const std::string& more) const {
    return listen("  tls: { cert: " + authority_.certificate("agent") + ", key: " + authority_.key("agent") + more +
                  " }\n");
  }
  std::shared_ptr<grpc::Channel> tls_channel(const std::string& client = {}) const {
    grpc::SslCredentialsOptions options;
    options.pem_root_certs = read_file(authority_.ca());
    if (!client.empty()) {
      options.pem_cert_chain = read_file(authority_.certificate(client));
      options.pem_private_key = read_file(authority_.key(client));
    }
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    return grpc::CreateCustomChannel("localhost:" + port(), grpc::SslCredentials(options), arguments);
  }
  Certificates authority_;
};

TEST_F(GrpcResolve, WithoutAGrantNobodyGetsAValueNotEvenRoot) {
  Agent agent = this->agent({});
  up(agent);
  const Reply reply = ask({reference("cache")});
  EXPECT_EQ(reply.status.error_code(), StatusCode::PERMISSION_DENIED);
  EXPECT_THAT(reply.status.error_message(), HasSubstr("resolve.grants"));
  EXPECT_THAT(post(agent, {{"backend", "cache"}, {"references", {reference("cache")}}}), HasSubstr("403"));
  EXPECT_EQ(lines(agent, false), 2) << agent.cli({"audit"}).out;
}

TEST_F(GrpcResolve, TheValuesOfOneBackendGoToItsCallersAndNowhereElse) {
  Agent agent = this->agent(mine());
  up(agent);
  EXPECT_EQ(ask({reference("cache"), "${env:CACHE_USER}", "file:" + dir_.file("cache")}).values,
            (std::vector<std::string>{"file-canary-1", "env-canary", "file-canary-1"}));
  secret("cache", "file-canary-2");
  EXPECT_EQ(ask({reference("cache")}).values, std::vector<std::string>{"file-canary-2"});
  EXPECT_EQ(ask({reference("other")}, "other").status.error_code(), StatusCode::PERMISSION_DENIED);
  EXPECT_EQ(ask({reference("other")}).status.error_code(), StatusCode::NOT_FOUND);
  EXPECT_EQ(ask({"file:" + dir_.path().string() + "/x/../other"}).status.error_code(), StatusCode::NOT_FOUND);
  EXPECT_EQ(ask({"file:/etc/shadow"}).status.error_code(), StatusCode::NOT_FOUND);
  EXPECT_EQ(ask({}).status.error_code(), StatusCode::INVALID_ARGUMENT);
  fs::permissions(dir_.file("cache"), fs::perms(0666));
  EXPECT_EQ(ask({reference("cache")}).status.error_code(), StatusCode::PERMISSION_DENIED) << "others may write it";
  EXPECT_EQ(lines(agent, true), 2) << agent.cli({"audit"}).out;
  EXPECT_EQ(agent.stop(), 0);
  std::string all = agent.log();
  for (const auto& file : fs::directory_iterator(agent.data_dir())) all += read_file(file.path());
  EXPECT_THAT(all, Not(HasSubstr("canary"))) << "no value is logged or stored";
}

TEST_F(GrpcResolve, LoginsOfApplicationsAreShownAndGivenInThePlaceOfTheAgentsOwn) {
  Agent agent = this->agent(mine("apps"));
  up(agent);
  grpc::ClientContext context;
  v1::GetBackendRequest request;
  request.set_name("apps");
  v1::Backend backend;
  ASSERT_TRUE(v1::BackendRegistry::NewStub(channel())->GetBackend(&context, request, &backend).ok());
  const auto config = nlohmann::json::parse(backend.config_json())["redis"];
  EXPECT_EQ(config["username"], "app");
  EXPECT_EQ(config["password"], reference("other"));
  EXPECT_EQ(ask({reference("other")}, "apps").values, std::vector<std::string>{"other-canary"});
  EXPECT_EQ(ask({reference("cache")}, "apps").status.error_code(), StatusCode::NOT_FOUND) << "the agent's own login";
}

TEST_F(GrpcResolve, TheHttpApiGivesTheSameToTheSameCallers) {
  secret("cache", "quote\" back\\ \n tab\t umlaut\xc3\xbc");
  Agent agent = this->agent(mine());
  up(agent);
  const std::string answer = post(agent, {{"backend", "cache"}, {"references", {reference("cache")}}});
  ASSERT_TRUE(answer.ends_with("200")) << answer;
  const auto parsed = nlohmann::json::parse(answer.substr(0, answer.size() - 3));
  EXPECT_EQ(parsed["credentials"][0]["reference"], reference("cache"));
  EXPECT_EQ(parsed["credentials"][0]["value"], "quote\" back\\ \n tab\t umlaut\xc3\xbc");
  secret("cache", "\xff\x01 bytes");
  EXPECT_THAT(post(agent, {{"backend", "cache"}, {"references", {reference("cache")}}}),
              HasSubstr(R"("base64":"/wEgYnl0ZXM=")"));
  EXPECT_EQ(ask({reference("cache")}).values, std::vector<std::string>{"\xff\x01 bytes"});
  EXPECT_THAT(post(agent, {{"backend", "other"}, {"references", {reference("other")}}}), HasSubstr("403"));
  EXPECT_THAT(post(agent, {{"backend", "cache"}, {"references", {reference("other")}}}), HasSubstr("404"));
  EXPECT_THAT(post(agent, {{"backend", "cache"}, {"references", "x"}}), HasSubstr("400"));
  EXPECT_THAT(post(agent, {{"backend", "cache"}, {"references", {"x"}}, {"name", 1}}), HasSubstr("400"));
}

TEST_F(GrpcResolve, CertificatesAndTokensGetWhatTheyAreGrantedOverTls) {
  authority_.issue("runner", "order-runner", "DNS:order-runner");
  authority_.issue("viewer", "viewer", "DNS:viewer");
  const std::string token = dir_.write("token", "0123456789abcdef0123"),
                    idle = dir_.write("idle", "fedcba98765432100123");
  Agent agent = this->agent(
      "resolve:\n  grants:\n    - { certificate: \"order-*\", backends: [cache] }\n    - { token: ci, backends: "
      "[other] }\n",
      tls(", client_ca: " + authority_.ca()) + "  tokens:\n    - { name: ci, token: \"${file:" + token +
          "}\" }\n    - { name: idle, token: \"${file:" + idle + "}\" }\n");
  up(agent);
  EXPECT_EQ(ask_at(tls_channel("runner"), {reference("cache")}).values, std::vector<std::string>{"file-canary-1"});
  EXPECT_EQ(ask_at(tls_channel("viewer"), {reference("cache")}).status.error_code(), StatusCode::PERMISSION_DENIED);
  EXPECT_EQ(ask_at(tls_channel("runner"), {reference("other")}, "other").status.error_code(),
            StatusCode::PERMISSION_DENIED);
  EXPECT_EQ(ask_at(tls_channel(), {reference("other")}, "other", "0123456789abcdef0123").values,
            std::vector<std::string>{"other-canary"});
  EXPECT_EQ(ask_at(tls_channel(), {reference("other")}, "other", "fedcba98765432100123").status.error_code(),
            StatusCode::PERMISSION_DENIED);
  EXPECT_EQ(ask_at(tls_channel(), {reference("other")}, "other").status.error_code(), StatusCode::UNAUTHENTICATED);
  EXPECT_EQ(ask({reference("cache")}).status.error_code(), StatusCode::PERMISSION_DENIED) << "root on the Unix socket";
  EXPECT_THAT(agent.cli({"audit"}).out, HasSubstr("cert:order-runner"));
}

TEST_F(GrpcResolve, AGrantIsTakenAwayByAReloadAndOverPlainTcpThereIsNone) {
  const std::string token = dir_.write("token", "0123456789abcdef0123");
  const std::string plain =
      listen("  allow_plain_loopback: true\n  tokens: [{ name: ci, token: \"${file:" + token + "}\" }]\n");
  Agent agent = this->agent(mine(), plain);
  up(agent);
  const auto tcp = grpc::CreateChannel("127.0.0.1:" + port(), grpc::InsecureChannelCredentials());
  const Reply reply = ask_at(tcp, {reference("cache")}, "cache", "0123456789abcdef0123");
  EXPECT_EQ(reply.status.error_code(), StatusCode::PERMISSION_DENIED);
  EXPECT_THAT(reply.status.error_message(), HasSubstr("plain TCP"));
  EXPECT_TRUE(ask({reference("cache")}).status.ok());
  std::string config = read_file(agent.config());
  config.replace(config.find("uid: "), 5 + std::to_string(::getuid()).size(), "uid: 54321");
  std::ofstream(agent.config(), std::ios::trunc) << config;
  const Output reloaded = run({Agent::binary(), "reload", "--config", agent.config()});
  EXPECT_EQ(reloaded.code, 0) << reloaded.err;
  EXPECT_THAT(reloaded.out, HasSubstr("resolve"));
  EXPECT_EQ(ask({reference("cache")}).status.error_code(), StatusCode::PERMISSION_DENIED);
}

TEST_F(GrpcResolve, GrantsThatCannotWorkAreRefusedBeforeAnythingRuns) {
  const auto said = [this](const std::string& grants, const std::string& grpc = {}) {
    Agent agent = this->agent("resolve:\n  " + grants + "\n", grpc);
    const Output checked = run({Agent::binary(), "validate", "--config", agent.config()}, {{"CACHE_USER", "x"}});
    return checked.out + checked.err;
  };
  EXPECT_THAT(said("grants: [{ backends: [cache] }]"), HasSubstr("must name its caller"));
  EXPECT_THAT(said("grants: [{ uid: 1, group: x, backends: [cache] }]"), HasSubstr("2 of them"));
  EXPECT_THAT(said("grants: [{ uid: 1 }]"), HasSubstr("names no backend"));
  EXPECT_THAT(said("grants: [{ uid: -1, backends: [cache] }]"), HasSubstr("uid"));
  EXPECT_THAT(said("grants: [{ uidd: 1, backends: [cache] }]"), HasSubstr("uidd"));
  EXPECT_THAT(said("grants: [{ token: ci, backends: [cache] }]"), HasSubstr("grpc.tokens"));
  EXPECT_THAT(said("grants: [{ certificate: x, backends: [cache] }]"), HasSubstr("client_ca"));
  EXPECT_THAT(said("grants: [{ uid: 1, backends: [cash] }]"), HasSubstr("matches no backend"));
  EXPECT_THAT(said("grants: [{ uid: 1, backends: [cash] }]", "  register: { references: [] }\n"),
              Not(HasSubstr("matches no backend")))
      << "it may be registered";
  EXPECT_THAT(said("per_minute: 0"), HasSubstr("per_minute"));
  const std::string token = dir_.write("token", "0123456789abcdef0123");
  EXPECT_THAT(
      said("grants: [{ token: ci, backends: [cache] }]",
           listen("  allow_plain_loopback: true\n  tokens: [{ name: ci, token: \"${file:" + token + "}\" }]\n")),
      HasSubstr("plain TCP"));
}

TEST_F(GrpcResolve, AFullDiskGivesNoValueBecauseItTakesNoAuditLine) {
  if (::getuid() != 0) GTEST_SKIP() << "LOUD: needs root, it mounts a tmpfs in a mount namespace of its own";
  Agent agent = this->agent(mine());
  fs::create_directory(agent.data_dir());
  up(agent, {"unshare", "-m", "sh", "-c", "mount -t tmpfs -o size=1m,mode=0700 tmpfs \"$0\" && exec \"$@\"",
             agent.data_dir()});
  ASSERT_TRUE(ask({reference("cache")}).status.ok()) << agent.log();
  const std::string fill = "/proc/" + std::to_string(agent.pid()) + "/root" + agent.data_dir() + "/fill";
  std::ofstream out(fill, std::ios::binary);
  while (out.write(std::string(4096, 'x').data(), 4096).flush()) continue;
  out.close();
  Reply reply;  // what is left of the write-ahead log takes a few lines more
  ASSERT_TRUE(eventually(
      [&] {
        reply = ask({reference("cache")});
        return !reply.status.ok();
      },
      seconds(40)));
  EXPECT_EQ(reply.status.error_code(), StatusCode::FAILED_PRECONDITION) << reply.status.error_message();
  EXPECT_THAT(reply.status.error_message(), HasSubstr("the audit log cannot be written"));
  EXPECT_TRUE(reply.values.empty());
  fs::remove(fill);
  EXPECT_TRUE(eventually([&] { return ask({reference("cache")}).status.ok(); }, seconds(40))) << agent.log();
}

/// The agent is killed at any moment of its answers. Whoever got a value has a line, and the chain is whole.
TEST_F(GrpcResolve, AKilledAgentHasALineForEachValueThatItGave) {
  int answered = 0;
  for (int round = 0; round < 8; ++round) {
    Agent agent = this->agent(mine("cache", "  per_minute: 60000\n"));
    ASSERT_NO_FATAL_FAILURE(up(agent));
    std::atomic<int> good{0};
    std::vector<std::thread> clients;
    for (int i = 0; i < 4; ++i) {
      clients.emplace_back([&] {
        const auto kept = channel();
        while (ask_at(kept, {reference("cache")}).status.ok()) ++good;
      });
    }
    EXPECT_TRUE(eventually([&] { return good >= 20 + 7 * round; }));
    agent.kill();
    for (auto& client : clients) client.join();
    answered += good;
  }
  Agent agent = this->agent(mine());
  up(agent);
  EXPECT_GE(lines(agent, true), answered);
  EXPECT_LE(lines(agent, true), answered + 8 * 4) << "a line without an answer for each call under way at most";
  EXPECT_THAT(agent.cli({"audit", "--verify"}).out, HasSubstr("whole"));
  std::printf("kills: 8, values given: %d, lines: %d\n", answered, lines(agent, true));
}

TEST_F(GrpcResolve, TenThousandRequestsCostTheirRate) {
  Agent agent = this->agent(mine("cache", "  per_minute: 100\n"));
  up(agent);
  const auto kept = channel();
  std::map<StatusCode, int> codes;
  for (int i = 0; i < 10'000; ++i) ++codes[ask_at(kept, {reference("cache")}).status.error_code()];
  EXPECT_GE(codes[StatusCode::OK], 100);
  EXPECT_LT(codes[StatusCode::OK], 250);
  EXPECT_EQ(codes[StatusCode::OK] + codes[StatusCode::RESOURCE_EXHAUSTED], 10'000);
  EXPECT_EQ(lines(agent, true), codes[StatusCode::OK]);
  EXPECT_LT(lines(agent, false), 30);
  std::printf("requests: 10000, answered: %d, lines of refusals: %d\n", codes[StatusCode::OK], lines(agent, false));
}

}  // namespace
}  // namespace driftd::test
