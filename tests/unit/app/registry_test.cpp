// SPDX-License-Identifier: Apache-2.0
// The registry over the real engine and store, with changes that the store holds up or cuts off at a certain point.
#include "app/registry.hpp"

#include <gmock/gmock.h>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/use_future.hpp>

#include "engine/backend_rows.hpp"
#include "engine/context.hpp"
#include "engine/runner.hpp"
#include "store/sqlite_store.hpp"
#include "support/line/cut_store.hpp"
#include "support/line/scripted.hpp"
#include "support/process.hpp"

namespace driftd::app {
namespace {

using core::ManualCall;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;
using testing::SizeIs;

/// Opens scripted sessions. A scan finds the one plugin, unless it hangs.
class OnePlugin final : public core::SessionFactory {
 public:
  OnePlugin(std::shared_ptr<test::ScriptedWorld> world, asio::any_io_executor core)
      : sessions_(std::move(world), {{"deaf", deaf}}, core),
        hanging_(core, asio::steady_timer::time_point::max()) {}
  Task<std::vector<ScanResult>> scan() override {
    ++scans;
    if (hangs) co_await hanging_.async_wait(asio::as_tuple(asio::use_awaitable));
    auto info = std::make_shared<core::ProviderInfo>();
    info->id = "scripted";
    info->settings_schema = R"({"type":"object"})";
    std::vector<ScanResult> out;
    out.push_back({"scripted.so", std::move(info), {}, {}});
    co_return out;
  }
  Result<std::shared_ptr<core::Session>> open(core::SessionSpec spec) override {
    return sessions_.open(std::move(spec));
  }
  void on_event(std::function<void(core::SessionEvent)>) override {}
  void go_on() {
    hangs = false;
    hanging_.cancel();
  }
  const std::shared_ptr<test::ScriptedWorld> deaf = std::make_shared<test::ScriptedWorld>();  ///< of backend `deaf`
  bool hangs = false;
  int scans = 0;

 private:
  test::ScriptedFactory sessions_;
  asio::steady_timer hanging_;
};

/// Everything on the core runs on the test's thread, inside wait().
class RegistryOverTheStore : public testing::Test {
 protected:
  RegistryOverTheStore() {
    world_->resources[{"thing", "t"}] = R"({"partitions":3})";
    store::Settings settings;
    settings.data_dir = dir_.path() / "data";
    auto opened =
        store::SqliteStore::open(settings, executors_.store.get_executor(), executors_.io.get_executor(), clock_);
    if (!opened) throw std::runtime_error(opened.error().message);
    store_ = std::move(*opened);
    cut_ = std::make_unique<test::CutStore>(*store_);
    const auto routes = std::make_shared<std::vector<core::Route>>();
    context_ = std::make_shared<engine::Context>(
        engine::Context{executors_.core.get_executor(), executors_.diff.get_executor(), *cut_, clock_, metrics_,
                        store_->key().store, "agent", "cluster", routes, [] {}});
    engine_ = std::make_unique<engine::Engine>(context_, plugin_, store_->key().worker, store_->key().digest_seed);
    config_ = with("");
    registry_ = std::make_unique<Registry>(
        config_, Registry::Needs{*engine_, plugin_, *cut_, std::make_shared<secrets::SecretUses>(config_), executors_,
                                 changing_});
  }
  ~RegistryOverTheStore() override {
    registry_->stop();
    plugin_.go_on();
    wait(engine_->stop());
    work_.reset();
    executors_.core.run();
  }
  void start() {
    auto specs = wait(registry_->start(wait(plugin_.scan())));
    ASSERT_TRUE(specs) << specs.error().message;
    ASSERT_TRUE(wait(engine_->start(std::move(*specs), false)));
  }
  /// A configuration with these lines in `backends`, in which callers may register more.
  config::Config with(const std::string& backends) const {
    auto out = config::parse(backends.empty() ? "{}" : "backends:\n" + backends, dir_.file("d.yaml"));
    if (!out) throw std::runtime_error(config::render(out.error()));
    out->grpc.manual_on = true;
    return std::move(*out);
  }
  static std::string line(const std::string& name, const std::string& team, const std::string& more = {}) {
    return "  - { name: " + name + ", provider: scripted, labels: { team: " + team + " }" + more + " }\n";
  }
  template <class T>
  T wait(Task<T> task) {
    auto out = asio::co_spawn(executors_.core, std::move(task), asio::use_future);
    while (out.wait_for(std::chrono::seconds(0)) != std::future_status::ready) executors_.core.run_one();
    return out.get();
  }
  Task<void> until(std::function<bool()> met) {
    while (!met()) {
      asio::steady_timer soon(executors_.core, std::chrono::milliseconds(2));
      co_await soon.async_wait(asio::as_tuple(asio::use_awaitable));
    }
  }
  static ManualCall call(const std::string& name, const std::string& team, const std::string& settings = "{}") {
    ManualCall out;
    out.name = name;
    out.actor = "ops";
    out.definition = R"({"name":")" + name + R"(","provider":"scripted","labels":{"team":")" + team +
                     R"("},"settings":)" + settings + "}";
    return out;
  }
  static std::string outcome(const Result<core::ManualAnswer>& answer) {
    if (!answer) return answer.error().message;
    if (answer->refusal != core::ManualAnswer::Refusal::none) return answer->why;
    return answer->existed ? "ok" : "there was none";
  }
  std::string add(ManualCall call) { return outcome(wait(registry_->register_backend(std::move(call)))); }
  std::string update(ManualCall call) { return outcome(wait(registry_->update_backend(std::move(call)))); }
  std::string remove(ManualCall call) { return outcome(wait(registry_->delete_backend(std::move(call)))); }
  /// Makes all commits wait until go_on_.
  void hold() {
    go_on_ = false;
    cut_->before_commit = [this] { return until([this] { return go_on_; }); };
  }
  /// One commit is made, and what is to be loaded afterwards cannot be read, until recover().
  void fail_behind_the_commit() {
    cut_->unreadable.clear();
    cut_->commits_left = 1;
    cut_->before_commit = [this]() -> Task<void> {
      cut_->unreadable = {"*"};
      co_return;
    };
  }
  void recover() {
    cut_->commits_left = -1;
    cut_->before_commit = {};
    cut_->unreadable.clear();
  }
  /// A reload with this configuration, with what it says of the registry.
  Registry::Outcome reload(const config::Config& next) {
    const auto plugins = wait(plugin_.scan());
    auto plan = wait(registry_->plan(std::make_shared<const config::Config>(next), plugins));
    if (!plan) {
      ADD_FAILURE() << plan.error().message;
      return {};
    }
    config_.backends = next.backends;
    return wait(registry_->apply(std::move(*plan)));
  }
  /// Returns name → team of all backends that run.
  std::map<std::string, std::string> running() {
    std::map<std::string, std::string> out;
    for (const auto& view : engine_->view()) {
      if (!engine_->find(view.name)->is_stopping()) out[view.name] = view.labels.at("team");
    }
    return out;
  }
  bool reads(const std::string& name) {
    const auto read = wait(engine_->refresh(name, true));
    return read && read->front().report.complete();
  }

  test::TempDir dir_;
  Executors executors_;
  asio::executor_work_guard<asio::io_context::executor_type> work_ = asio::make_work_guard(executors_.core);
  SystemClock clock_;
  core::NoMetrics metrics_;
  std::shared_ptr<test::ScriptedWorld> world_ = std::make_shared<test::ScriptedWorld>();
  OnePlugin plugin_{world_, executors_.core.get_executor()};
  AsyncMutex changing_{executors_.core.get_executor()};
  config::Config config_;
  std::unique_ptr<store::SqliteStore> store_;
  std::unique_ptr<test::CutStore> cut_;
  std::shared_ptr<engine::Context> context_;
  std::unique_ptr<engine::Engine> engine_;
  std::unique_ptr<Registry> registry_;
  bool go_on_ = true;
};

/// The rows that a reload reads are older than what it compares them with.
TEST_F(RegistryOverTheStore, AReloadLeavesAloneWhatSettlesWhileItIsPlanned) {
  start();
  ASSERT_EQ(add(call("changed", "a")), "ok");
  ASSERT_EQ(add(call("deleted", "a")), "ok");
  const auto settle_behind_the_rows = [this]() -> Task<void> {
    go_on_ = true;
    return until([this] { return registry_->idle(); });
  };
  const auto ask = [&](auto change) {
    hold();
    EXPECT_THAT(change(), HasSubstr("this change is made as soon as"));
    cut_->after_backends = settle_behind_the_rows;
    const auto outcome = reload(with(""));
    EXPECT_THAT(outcome.done, IsEmpty());
    EXPECT_THAT(outcome.failed, IsEmpty());
    EXPECT_TRUE(registry_->idle());
  };
  ask([&] { return add(call("added", "a")); });
  ask([&] { return update(call("changed", "b")); });
  ask([&] { return remove(call("deleted", "")); });
  EXPECT_THAT(running(), ElementsAre(Pair("added", "a"), Pair("changed", "b")));
  wait(registry_->mend());
  EXPECT_THAT(running(), ElementsAre(Pair("added", "a"), Pair("changed", "b")));
}

/// What the file says of a backend whose change is under way is made later, and the reload says so.
TEST_F(RegistryOverTheStore, AReloadSaysThatAChangeOfTheFileWaitsForTheOneUnderWay) {
  start();
  ASSERT_EQ(add(call("m", "a")), "ok");
  hold();
  EXPECT_THAT(update(call("m", "b")), HasSubstr("this change is made as soon as"));
  const config::Config next = with(line("m", "c"));
  cut_->after_backends = [this]() -> Task<void> {
    go_on_ = true;
    return until([this] { return registry_->idle(); });
  };
  const auto outcome = reload(next);
  EXPECT_THAT(outcome.done, IsEmpty());
  EXPECT_THAT(outcome.later, ElementsAre(HasSubstr("backends.m")));
  wait(registry_->mend());
  EXPECT_THAT(running(), ElementsAre(Pair("m", "c")));
}

/// Whether a call finds its backend is decided by what is stored, although that does not run yet.
TEST_F(RegistryOverTheStore, WhatIsStoredAndDoesNotRunIsNeitherMissingNorAsItWas) {
  start();
  const auto loading_fails = [&](auto change) {
    fail_behind_the_commit();
    EXPECT_THAT(change(), HasSubstr("the change is stored, but does not run yet"));
    recover();
  };
  const auto untouched = HasSubstr("an earlier change of it is stored, but does not run yet");
  loading_fails([&] { return add(call("added", "a")); });
  EXPECT_THAT(remove(call("added", "")), untouched);
  EXPECT_THAT(update(call("added", "b")), untouched);
  EXPECT_THAT(add(call("added", "b")), untouched);
  EXPECT_EQ(add(call("other", "a")), "ok") << "each backend for itself";
  EXPECT_EQ(update(call("added", "a")), "ok") << "the same again";

  ASSERT_EQ(add(call("changed", "a")), "ok");
  loading_fails([&] { return update(call("changed", "a", R"({"exclude":["x/*"]})")); });
  EXPECT_THAT(update(call("changed", "a")), untouched) << "it is not as it was";
  EXPECT_EQ(update(call("changed", "a", R"({"exclude":["x/*"]})")), "ok");

  ASSERT_EQ(add(call("deleted", "a")), "ok");
  cut_->commits_left = 1;
  EXPECT_THAT(remove(call("deleted", "")), HasSubstr("the change is stored, but does not run yet"));
  cut_->commits_left = -1;
  EXPECT_THAT(add(call("deleted", "a")), untouched) << "it is going";
  EXPECT_EQ(remove(call("deleted", "")), "ok");
  EXPECT_EQ(remove(call("deleted", "")), "there was none");
  EXPECT_THAT(running(), ElementsAre(Pair("added", "a"), Pair("changed", "a"), Pair("other", "a")));
  EXPECT_TRUE(reads("added") && reads("changed"));
}

TEST_F(RegistryOverTheStore, MaintenanceRunsWhatIsStored) {
  start();
  ASSERT_EQ(add(call("changed", "a")), "ok");
  fail_behind_the_commit();
  EXPECT_THAT(update(call("changed", "b", R"({"exclude":["x/*"]})")), HasSubstr("is stored, but does not run yet"));
  fail_behind_the_commit();
  EXPECT_THAT(add(call("added", "a")), HasSubstr("is stored, but does not run yet"));
  recover();
  EXPECT_THAT(running(), IsEmpty());
  wait(registry_->mend());
  EXPECT_THAT(running(), ElementsAre(Pair("added", "a"), Pair("changed", "b")));
  EXPECT_EQ(update(call("changed", "a")), "ok");
}

/// The row has the new form by then, and the engine starts only what runs as it is stored.
TEST_F(RegistryOverTheStore, AFileThatIsPutBackStartsWhatAFailedReloadHasStopped) {
  const config::Config before = with(line("f", "a"));
  config_ = before;
  start();
  fail_behind_the_commit();
  EXPECT_THAT(reload(with(line("f", "b", ", settings: { exclude: [x/*] }"))).failed, SizeIs(1));
  recover();
  EXPECT_THAT(wait(cut_->backends())->at(0).registration, HasSubstr(R"("team":"b")"));
  EXPECT_THAT(running(), IsEmpty());
  EXPECT_THAT(reload(before).done, ElementsAre("backends.f (started again)"));
  EXPECT_THAT(running(), ElementsAre(Pair("f", "a")));
  EXPECT_TRUE(reads("f"));
  EXPECT_THAT(reload(before).done, IsEmpty());
}

TEST_F(RegistryOverTheStore, AHangingRefreshKeepsNoOtherBackendStopped) {
  start();
  ASSERT_EQ(add(call("deaf", "a")), "ok");
  ASSERT_EQ(add(call("m", "a")), "ok");
  plugin_.deaf->refresh_hangs = true;
  const auto hanging = asio::co_spawn(executors_.core, engine_->refresh("deaf", true), asio::use_future);
  wait(until([this] { return engine_->find("deaf")->busy(); }));
  EXPECT_THAT(update(call("deaf", "b")), HasSubstr("this change is made as soon as"));
  cut_->unreadable = {"*"};
  EXPECT_THAT(remove(call("m", "")), HasSubstr("nothing was changed"));
  cut_->unreadable.clear();
  EXPECT_EQ(running().count("m"), 0u);
  EXPECT_FALSE(registry_->idle());
  wait(registry_->mend());
  EXPECT_EQ(running().count("m"), 1u);
  EXPECT_FALSE(registry_->idle()) << "the change of the other one is under way all the same";
}

/// Its runner has stopped, which is none of maintenance's business.
TEST_F(RegistryOverTheStore, MaintenanceDoesNotStartWhatAChangeUnderWayHasStopped) {
  start();
  ASSERT_EQ(add(call("m", "a")), "ok");
  hold();
  EXPECT_THAT(update(call("m", "b", R"({"exclude":["x/*"]})")), HasSubstr("this change is made as soon as"));
  ASSERT_THAT(running(), IsEmpty());
  wait(registry_->mend());  // returns, although the change holds the engine's registry
  EXPECT_FALSE(registry_->idle());
  go_on_ = true;
  wait(until([this] { return registry_->idle(); }));
  EXPECT_THAT(running(), ElementsAre(Pair("m", "b")));
}

TEST_F(RegistryOverTheStore, OneScanThatHangsIsSharedAndNotWaitedForAtTheEnd) {
  start();
  plugin_.hangs = true;
  const int before = plugin_.scans;
  EXPECT_EQ(add(call("a", "a")), "ok");
  EXPECT_EQ(add(call("b", "a")), "ok");
  EXPECT_EQ(plugin_.scans, before + 1);
  EXPECT_TRUE(registry_->idle());
  EXPECT_TRUE(registry_->scanning());
  plugin_.go_on();
  EXPECT_EQ(add(call("c", "a")), "ok");
  EXPECT_EQ(plugin_.scans, before + 2) << "a call is not answered from a scan that began before it";
  EXPECT_FALSE(registry_->scanning());
}

}  // namespace
}  // namespace driftd::app
