// SPDX-License-Identifier: Apache-2.0
// Manual backends of a real Redis: registered, read, changed and deleted by gRPC, and what is refused.
#include <unistd.h>
#include <fstream>

#include "registry_world.hpp"

namespace driftd::test {
namespace {

using grpc::StatusCode;
using std::chrono::seconds;
using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

v1::SubscribeRequest everything() {
  v1::SubscribeRequest out;
  out.set_start(v1::SubscribeRequest::START_OLDEST);
  return out;
}

std::vector<std::string> fields(const Event& event) {
  return {event.changed_fields().begin(), event.changed_fields().end()};
}

/// Returns the first event about the backend itself of this type.
std::optional<Event> registration(const Reader& reader, const std::string& backend, v1::BackendChangeType type) {
  for (const auto& event : reader.events()) {
    if (event.backend_name() == backend && event.change_type() == type && event.resource_id().empty()) return event;
  }
  return std::nullopt;
}

TEST_F(GrpcRegistry, ABackendIsRegisteredReadChangedAndDeleted) {
  server_.grant_readme("first-canary");
  secret("first", "first-canary");
  secret("second", "second-canary");
  Agent agent = registrar();
  start(agent);
  const Reader reader(channel(), everything());
  const auto platform = [&] { return agent.backend("platform"); };
  const auto worker = platform()->at("worker").at("pid");

  const Changed added = add(redis("cache", "first"));
  ASSERT_TRUE(added.ok()) << added.status.error_message() << agent.log();
  EXPECT_EQ(added.backend.source(), "manual");
  EXPECT_NE(added.backend.etag(), "");
  EXPECT_EQ(nlohmann::json::parse(added.backend.config_json())["redis"]["port"], server_.port());
  ASSERT_TRUE(eventually([&] { return agent.established({"cache"}); }, seconds(60))) << agent.log();
  const auto created = registration(reader, "cache", v1::BACKEND_CHANGE_TYPE_CREATED);
  ASSERT_TRUE(created) << "it was committed before the call was answered";
  EXPECT_EQ(created->source(), "manual");
  EXPECT_EQ(created->new_state().metadata().at("team"), "orders");
  EXPECT_EQ(nlohmann::json::parse(created->new_state().config_json())["redis"]["host"], "127.0.0.1");
  EXPECT_EQ(agent.backend("cache")->at("source"), "manual");
  EXPECT_THAT(agent.backend("platform")->at("defined_at").get<std::string>(), HasSubstr(agent.config() + ":"));
  EXPECT_THAT(agent.cli({"backends"}).out, AllOf(HasSubstr("SOURCE"), HasSubstr("manual"), HasSubstr("file")));

  server_.command({"CONFIG", "SET", "maxmemory", "64mb"});
  const auto drifted = [&] {
    for (const auto& event : reader.events()) {
      if (event.backend_name() == "cache" && event.change_type() == v1::BACKEND_CHANGE_TYPE_CONFIG_DRIFT_DETECTED)
        return true;
    }
    return false;
  };
  ASSERT_TRUE(eventually(drifted, seconds(30))) << agent.log();

  const std::string admin = std::to_string(server_.port());
  server_.command({"ACL", "SETUSER", "driftd", ">second-canary", "<first-canary"});
  const Changed changed = update(redis("cache", "second"), added.backend.etag());
  ASSERT_TRUE(changed.ok()) << changed.status.error_message();
  EXPECT_NE(changed.backend.etag(), added.backend.etag());
  const auto updated = registration(reader, "cache", v1::BACKEND_CHANGE_TYPE_UPDATED);
  ASSERT_TRUE(eventually([&] { return registration(reader, "cache", v1::BACKEND_CHANGE_TYPE_UPDATED).has_value(); }));
  EXPECT_THAT(fields(*registration(reader, "cache", v1::BACKEND_CHANGE_TYPE_UPDATED)),
              ElementsAre("config.redis.password"));
  server_.command({"CLIENT", "KILL", "TYPE", "normal"});
  const auto cycles = [&] { return agent.backend("cache")->at("cycles").get<int>(); };
  const auto failures = [&] { return agent.backend("cache")->at("failures").get<int>(); };
  const auto reads = [&] { return agent.backend("cache")->at("state") == "ok" && cycles() - failures() > 2; };
  ASSERT_TRUE(eventually(reads, seconds(60))) << agent.log();

  const Changed stale = update(redis("cache", "first"), added.backend.etag());
  EXPECT_EQ(stale.code(), StatusCode::ABORTED) << stale.status.error_message();
  EXPECT_THAT(stale.status.error_message(), HasSubstr(changed.backend.etag()));
  EXPECT_TRUE(update(redis("cache", "second"), added.backend.etag()).ok()) << "it is so already";
  EXPECT_EQ(remove("cache", added.backend.etag()).code(), StatusCode::ABORTED);
  ASSERT_EQ(agent.rows({"drifts"}).size(), 1u) << "the drift outlives a change of the backend";

  const Changed gone = remove("cache", changed.backend.etag());
  ASSERT_TRUE(gone.ok() && gone.existed) << gone.status.error_message();
  ASSERT_TRUE(eventually([&] { return registration(reader, "cache", v1::BACKEND_CHANGE_TYPE_DELETED).has_value(); }));
  EXPECT_FALSE(agent.backend("cache").has_value());
  EXPECT_FALSE(get("cache").has_value());
  EXPECT_THAT(agent.rows({"drifts"}), testing::IsEmpty());
  EXPECT_EQ(agent.rows({"drifts", "--all"}).at(0).at("status"), "retired");
  EXPECT_FALSE(remove("cache").existed);
  EXPECT_THAT(registrations(reader.events(), "cache"),
              ElementsAre("created manual", "updated manual", "deleted manual"));
  EXPECT_EQ(platform()->at("worker").at("pid"), worker) << "other backends go on";
  const std::string audit = agent.cli({"audit"}).out;
  for (const char* verb : {"register backend", "change backend", "unregister backend"}) {
    EXPECT_THAT(audit, HasSubstr(verb));
  }
  EXPECT_THAT(agent.log() + audit, Not(HasSubstr("canary")));
}

TEST_F(GrpcRegistry, WhatIsWrongIsRefusedByNameAndChangesNothing) {
  secret("password", "canary-1");
  dir_.write("elsewhere", "canary-2");
  Agent agent = registrar();
  start(agent);
  const auto refused = [&](const v1::BackendDefinition& definition, StatusCode code = StatusCode::INVALID_ARGUMENT) {
    const Changed out = add(definition);
    EXPECT_EQ(out.code(), code) << out.status.error_message();
    return out.status.error_message();
  };
  const auto settings = [&](const std::string& json) {
    auto out = redis("cache", "password");
    out.set_settings_json(json);
    return out;
  };
  const auto named = [&](const std::string& name) {
    auto out = redis(name, "password");
    return out;
  };
  const auto options = [&](const std::string& json) {
    auto out = redis("cache", "password");
    out.set_options_json(json);
    return out;
  };
  EXPECT_THAT(refused(settings(R"({"adress":"h:1"})")), AllOf(HasSubstr("settings.adress"), HasSubstr("address")));
  EXPECT_THAT(refused(settings(R"({"address":7})")), AllOf(HasSubstr("settings.address"), HasSubstr("expected")));
  EXPECT_THAT(refused(settings("{")), HasSubstr("settings_json"));
  EXPECT_THAT(refused(settings(R"({"password":"canary-3"})")), AllOf(HasSubstr("password"), HasSubstr("clear text")));
  EXPECT_THAT(refused(settings(R"({"sentinel":{"master":"m","password":12345}})")), HasSubstr("clear text"));
  EXPECT_THAT(refused(settings(R"({"password":"${file:)" + dir_.file("elsewhere") + R"(}"})")),
              HasSubstr("grpc.register.references"));
  EXPECT_THAT(refused(settings(R"({"password":"${file:)" + dir_.file("secrets/../elsewhere") + R"(}"})")),
              HasSubstr("'..'"));
  EXPECT_THAT(refused(settings(R"({"password":"${env:HOME}"})")), HasSubstr("grpc.register.references"));
  EXPECT_THAT(refused(settings(R"({"password":"${exec:/bin/id}"})")), HasSubstr("grpc.register.references"));
  EXPECT_THAT(refused(settings(R"({"password":"${file:)" + dir_.file("secrets/missing") + R"(}"})")),
              HasSubstr("missing"));
  EXPECT_THAT(refused(named("")), HasSubstr("name"));
  EXPECT_THAT(refused(named("a/b")), HasSubstr("a/b"));
  EXPECT_THAT(refused(named("..")), HasSubstr("it names a folder"));
  EXPECT_THAT(refused(named("a\u0085b")), HasSubstr("control character"));
  auto labelled = redis("cache", "password"), addressed = labelled;
  (*labelled.mutable_labels())["link"] = "redis://u:canary-4@h:1/";
  addressed.set_endpoint("redis://u:canary-5@h:1/");
  EXPECT_THAT(refused(labelled), AllOf(HasSubstr("label 'link'"), HasSubstr("clear text"), Not(HasSubstr("canary"))));
  EXPECT_THAT(refused(addressed), AllOf(HasSubstr("'endpoint'"), HasSubstr("clear text"), Not(HasSubstr("canary"))));
  EXPECT_THAT(refused(options(R"({"intervals":"1s"})")), HasSubstr("did you mean 'interval'"));
  EXPECT_THAT(refused(options(R"({"interval":"1 day"})")), HasSubstr("interval"));
  EXPECT_THAT(refused(options(R"({"isolation":"in-process"})")), HasSubstr("isolation"));
  EXPECT_THAT(refused(options(R"({"name":"other"})")), HasSubstr("field of its own"));
  EXPECT_THAT(refused(options(R"({"x":")" + std::string(70'000, 'x') + "\"}")), HasSubstr("65536"));
  auto path = redis("cache", "password"), unknown = path;
  path.set_provider("/tmp/x.so");
  unknown.set_provider("rediss");
  EXPECT_THAT(refused(path), HasSubstr("path"));
  EXPECT_THAT(refused(unknown, StatusCode::FAILED_PRECONDITION), HasSubstr("driftd plugin ls"));

  EXPECT_THAT(refused(terraform("platform", topics_.path()), StatusCode::ALREADY_EXISTS),
              HasSubstr(agent.config() + ":"));
  const Changed configured = update(terraform("platform", topics_.path()));
  EXPECT_EQ(configured.code(), StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(configured.status.error_message(), HasSubstr(agent.config() + ":"));
  EXPECT_EQ(remove("platform").code(), StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(update(redis("nowhere", "password")).code(), StatusCode::NOT_FOUND);
  EXPECT_EQ(list().size(), 1u);
  EXPECT_EQ(agent.rows({"backends"}).size(), 1u);
  for (const auto& line : agent.rows({"audit", "--limit", "1000"})) {
    if (line.value("actor", "") == "driftd") continue;  // the rules of the configuration
    EXPECT_NE(line.value("outcome", ""), "") << "each was turned down, and its line says why: " << line.dump();
  }
  EXPECT_THAT(agent.cli({"audit"}).out, Not(HasSubstr("canary")));
  EXPECT_THAT(agent.log(), Not(HasSubstr("canary")));
}

/// Callers with the right `resolve` get the values of a manual backend as they get those of the file, and after a
/// restart too.
TEST_F(GrpcRegistry, ReferencesOfAManualBackendAreResolved) {
  secret("password", "manual-canary");
  std::filesystem::permissions(dir_.file("secrets/password"), std::filesystem::perms(0600));
  Agent agent = this->agent("  register: { references: [\"file:" + dir_.file("secrets") + "/*\"] }\nresolve:\n" +
                            "  grants: [{ uid: " + std::to_string(::getuid()) + ", backends: [\"*\"] }]\n");
  start(agent);
  const auto resolve = [&](const std::string& name) {
    grpc::ClientContext context;
    context.set_wait_for_ready(true);
    context.set_deadline(std::chrono::system_clock::now() + seconds(60));
    v1::ResolveCredentialsRequest request;
    request.set_backend("cache");
    request.add_references("${file:" + dir_.file("secrets/" + name) + "}");
    v1::ResolveCredentialsResponse answer;
    const auto status = v1::BackendCredentials::NewStub(channel())->ResolveCredentials(&context, request, &answer);
    return status.ok() ? answer.credentials(0).value() : status.error_message();
  };
  EXPECT_THAT(resolve("password"), Not(HasSubstr("canary"))) << "it is not registered yet";
  ASSERT_TRUE(add(redis("cache", "password")).ok());
  EXPECT_EQ(resolve("password"), "manual-canary");
  EXPECT_THAT(resolve("other"), HasSubstr("cache")) << "only what the backend names";
  agent.kill();
  agent.start();
  ASSERT_TRUE(eventually([&] { return resolve("password") == "manual-canary"; }, seconds(60))) << agent.log();
  ASSERT_TRUE(remove("cache").ok());
  EXPECT_THAT(resolve("password"), Not(HasSubstr("canary")));
}

TEST_F(GrpcRegistry, WithoutItsSectionNobodyMayRegister) {
  secret("password", "p");
  Agent agent = this->agent();
  start(agent);
  const Changed out = add(terraform("more", topics_.path()));
  EXPECT_EQ(out.code(), StatusCode::PERMISSION_DENIED);
  EXPECT_THAT(out.status.error_message(), HasSubstr("grpc.register"));
  EXPECT_EQ(remove("platform").code(), StatusCode::PERMISSION_DENIED);
}

TEST_F(GrpcRegistry, ARestartBringsItBackAndALostSecretStopsItAlone) {
  server_.grant_readme("p");
  const std::string file = secret("password", "p");
  Agent agent = registrar();
  start(agent);
  const Changed added = add(redis("cache", "password"));
  ASSERT_TRUE(added.ok()) << added.status.error_message();
  ASSERT_TRUE(eventually([&] { return agent.established({"cache"}); }, seconds(60))) << agent.log();
  agent.kill();
  agent.start();
  ASSERT_TRUE(eventually([&] { return agent.established({"cache", "platform"}); }, seconds(60))) << agent.log();
  EXPECT_EQ(get("cache")->etag(), added.backend.etag());
  EXPECT_EQ(agent.backend("cache")->at("source"), "manual");

  EXPECT_EQ(agent.stop(), 0);
  std::filesystem::remove(file);
  agent.start();
  ASSERT_TRUE(eventually([&] { return agent.established({"platform"}); }, seconds(60))) << agent.log();
  ASSERT_TRUE(eventually([&] { return agent.backend("cache")->at("state") == "failed"; })) << agent.log();
  EXPECT_THAT(agent.backend("cache")->at("last_error").get<std::string>(), HasSubstr(file));
  secret("password", "p");
  EXPECT_EQ(run({Agent::binary(), "reload", "--config", agent.config()}).code, 0) << agent.log();
  ASSERT_TRUE(eventually([&] { return agent.backend("cache")->at("state") == "ok"; }, seconds(30))) << agent.log();
  EXPECT_EQ(get("cache")->etag(), added.backend.etag());
  const Reader reader(channel(), everything());
  ASSERT_TRUE(eventually([&] { return !registrations(reader.events(), "cache").empty(); }));
  EXPECT_THAT(registrations(reader.events(), "cache"), ElementsAre("created manual"));
}

TEST_F(GrpcRegistry, TheConfigurationTakesABackendOver) {
  Agent agent = registrar();
  start(agent);
  ASSERT_TRUE(add(terraform("more", topics_.path(), "a")).ok());
  const std::string uid = agent.backend("more")->at("uid");
  std::string text = read_file(agent.config());
  text.insert(text.find("grpc:\n"), "  - { name: more, provider: terraform, settings: { path: " + topics_.path() +
                                        " }, labels: { team: b } }\n");
  std::ofstream(agent.config()) << text;
  const Output reloaded = run({Agent::binary(), "reload", "--config", agent.config()});
  ASSERT_EQ(reloaded.code, 0) << reloaded.err;
  EXPECT_EQ(agent.backend("more")->at("source"), "file");
  EXPECT_EQ(agent.backend("more")->at("uid"), uid);
  EXPECT_EQ(remove("more").code(), StatusCode::FAILED_PRECONDITION);
  const Reader reader(channel(), everything());
  ASSERT_TRUE(eventually([&] { return registration(reader, "more", v1::BACKEND_CHANGE_TYPE_UPDATED).has_value(); }));
  EXPECT_THAT(fields(*registration(reader, "more", v1::BACKEND_CHANGE_TYPE_UPDATED)), Contains("metadata.team"));
}

}  // namespace
}  // namespace driftd::test
