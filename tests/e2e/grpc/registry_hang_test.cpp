// SPDX-License-Identifier: Apache-2.0
// A backend whose server never answers holds up no call that changes the registry, and no reload; nor does a sink.
#include <sqlite3.h>
#include <sys/stat.h>
#include <filesystem>
#include <fstream>
#include <future>

#include "registry_world.hpp"

namespace driftd::test {
namespace {

using grpc::StatusCode;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::AllOf;
using testing::HasSubstr;

constexpr milliseconds kAnswer{5'000};  // the promise is 2.5 s; a busy machine gets as much again

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
  EXPECT_THAT(changed.status.error_message(), HasSubstr("this change is made as soon as"));
  EXPECT_LT(time_of([&] { other = add(terraform("more", topics_.path())); }), kAnswer);
  EXPECT_TRUE(other.ok()) << other.status.error_message();
  EXPECT_LT(time_of([&] { again = update(hanging("c")); }), kAnswer);
  EXPECT_EQ(again.code(), StatusCode::UNAVAILABLE) << "one change after the other";
  EXPECT_THAT(again.status.error_message(), HasSubstr("this call changed nothing"));
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
  EXPECT_TRUE(gone.ok() && gone.existed) << gone.status.error_message();
  EXPECT_FALSE(get("deaf").has_value());
}

/// The reload itself waits until no request is under way that only the former secret signed.
TEST_F(GrpcRegistryHang, AReceiverThatNeverAnswersDelaysOnlyTheReload) {
  const std::string old_key = "the-old-secret-of-24-byt", new_key = "the-new-secret-of-24-byt";
  Agent agent = registrar("  hook: { type: webhook, url: \"http://" + deaf_.address() +
                          "/\", allow_http_loopback: true, secrets: [" + old_key + "] }\n");
  start(agent);
  ASSERT_TRUE(eventually([&] { return deaf_.called(); }, seconds(30))) << agent.log();
  std::string text = read_file(agent.config());
  text.replace(text.find(old_key), old_key.size(), new_key);
  std::ofstream(agent.config()) << text;
  auto reload = std::async(std::launch::async, [&] {
    return run({Agent::binary(), "reload", "--config", agent.config()}).code;
  });
  ASSERT_TRUE(eventually([&] { return agent.log().find("reload: sinks.hook") != std::string::npos; })) << agent.log();
  Changed other;
  EXPECT_LT(time_of([&] { other = add(terraform("more", topics_.path())); }), kAnswer);
  EXPECT_TRUE(other.ok()) << other.status.error_message();
  EXPECT_EQ(reload.wait_for(seconds(0)), std::future_status::timeout) << "the request is under way";
  EXPECT_EQ(reload.get(), 0);
}

TEST_F(GrpcRegistryHang, ASecretThatIsAFifoIsRefusedAndNotWaitedFor) {
  Agent agent = registrar();
  start(agent);
  std::filesystem::create_directories(dir_.file("secrets"));
  ASSERT_EQ(::mkfifo(dir_.file("secrets/password").c_str(), 0600), 0);
  Changed refused, other;
  EXPECT_LT(time_of([&] { refused = add(redis("cache", "password")); }), kAnswer);
  EXPECT_EQ(refused.code(), StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(refused.status.error_message(), HasSubstr("is not a regular file"));
  EXPECT_LT(time_of([&] { other = add(terraform("more", topics_.path())); }), kAnswer);
  EXPECT_TRUE(other.ok()) << other.status.error_message();
}

TEST_F(GrpcRegistryHang, AReloadRefusesASecretThatIsAFifo) {
  Agent agent = registrar();
  start(agent);
  const std::string fifo = dir_.file("fifo"), before = "backends:\n";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  std::string text = read_file(agent.config());
  text.insert(text.find(before) + before.size(),
              "  - { name: cache, provider: redis, settings: { password: \"${file:" + fifo + "}\" } }\n");
  std::ofstream(agent.config()) << text;
  Output reloaded;
  EXPECT_LT(time_of([&] { reloaded = run({Agent::binary(), "reload", "--socket", agent.socket()}); }), kAnswer);
  EXPECT_EQ(reloaded.code, 2) << reloaded.err;
  EXPECT_THAT(reloaded.err, AllOf(HasSubstr(agent.config() + ":"), HasSubstr(fifo + " is not a regular file")));
  EXPECT_EQ(agent.stop(), 0);
}

/// The configuration comes through a FIFO, whose writer the reload waits for. Nobody else does.
TEST_F(GrpcRegistryHang, AReloadThatWaitsForItsFileDelaysNoOtherChange) {
  Agent agent = registrar();
  start(agent);
  const std::string text = read_file(agent.config());
  std::filesystem::remove(agent.config());
  ASSERT_EQ(::mkfifo(agent.config().c_str(), 0600), 0);
  auto reload = std::async(std::launch::async, [&] {
    return run({Agent::binary(), "reload", "--socket", agent.socket()});
  });
  ASSERT_TRUE(eventually([&] { return agent.log().find("reloading ") != std::string::npos; })) << agent.log();
  Changed other;
  EXPECT_LT(time_of([&] { other = add(terraform("more", topics_.path())); }), kAnswer);
  EXPECT_TRUE(other.ok()) << other.status.error_message();
  EXPECT_EQ(reload.wait_for(seconds(0)), std::future_status::timeout) << "it waits for the FIFO";
  std::ofstream(agent.config()) << text;
  const Output reloaded = reload.get();
  EXPECT_EQ(reloaded.code, 0) << reloaded.err;
  EXPECT_TRUE(get("more").has_value());
}

/// Somebody puts a plugin into the folder that hangs when it is loaded, which each scan tries anew for a while.
TEST_F(GrpcRegistryHang, APluginThatHangsAtLoadDelaysNoChange) {
  const std::string plugins = dir_.file("plugins"), source = dir_.write("hangs.c", R"(#include <poll.h>
__attribute__((constructor)) static void at_load(void) { for (;;) poll(0, 0, -1); }
__attribute__((visibility("default"))) int driftd_provider_v1(void) { return 0; })");
  std::filesystem::create_directories(plugins);
  const Output built = run({DRIFTD_CC, "-fPIC", "-shared", "-fvisibility=hidden", "-Wl,-z,relro,-z,now", "-o",
                            dir_.file("hangs.so"), source});
  ASSERT_EQ(built.code, 0) << built.err;
  Agent agent = registrar();
  std::string text = read_file(agent.config());
  const std::string own = "\"" + Agent::build("providers") + "\"";
  text.replace(text.find(own), own.size(), own + ", \"" + plugins + "\"");
  std::ofstream(agent.config()) << text;
  start(agent);
  std::filesystem::rename(dir_.file("hangs.so"), plugins + "/hangs.so");
  Changed added, other;
  Output reloaded;
  EXPECT_LT(time_of([&] { added = add(terraform("more", topics_.path())); }), kAnswer);
  EXPECT_TRUE(added.ok()) << added.status.error_message();
  EXPECT_LT(time_of([&] { reloaded = run({Agent::binary(), "reload", "--socket", agent.socket()}); }), kAnswer);
  EXPECT_EQ(reloaded.code, 0) << reloaded.err;
  auto unknown = terraform("other", topics_.path());
  unknown.set_provider("hangs");
  EXPECT_LT(time_of([&] { other = add(unknown); }), kAnswer);
  EXPECT_EQ(other.code(), StatusCode::FAILED_PRECONDITION) << other.status.error_message();
  EXPECT_TRUE(eventually([&] { return agent.log().find("hangs.so") != std::string::npos; }, seconds(40)));
  EXPECT_EQ(agent.stop(), 0);
}

/// A backend that is being added is not there yet; that it is not must not be said any more.
TEST_F(GrpcRegistryHang, WhileTheStoreIsBusyNoAnswerSaysWhatAnAdditionUnderWayMakesFalse) {
  Agent agent = registrar();
  start(agent);
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open(dir_.file("data/store.db").c_str(), &db), SQLITE_OK);
  sqlite3_busy_timeout(db, 5000);
  ASSERT_EQ(sqlite3_exec(db, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr), SQLITE_OK);
  Changed added;
  EXPECT_LT(time_of([&] { added = add(terraform("more", topics_.path())); }), kAnswer);
  EXPECT_EQ(added.code(), StatusCode::UNAVAILABLE) << added.status.error_message();
  EXPECT_THAT(added.status.error_message(), HasSubstr("this change is made as soon as"));
  for (const Changed& other : {remove("more"), update(terraform("more", topics_.path(), "b"))}) {
    EXPECT_EQ(other.code(), StatusCode::UNAVAILABLE);
    EXPECT_THAT(other.status.error_message(), HasSubstr("this call changed nothing"));
  }
  EXPECT_EQ(sqlite3_exec(db, "ROLLBACK", nullptr, nullptr, nullptr), SQLITE_OK);
  sqlite3_close(db);
  EXPECT_TRUE(eventually([&] { return get("more").has_value(); }, seconds(30))) << agent.log();
}

}  // namespace
}  // namespace driftd::test
