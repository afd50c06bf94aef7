// SPDX-License-Identifier: Apache-2.0
// Runs engine and relay over the real store, on threads of their own, with one scripted backend.
#pragma once

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_future.hpp>
#include <functional>
#include <future>
#include <thread>

#include "delivery/relay.hpp"
#include "engine/enforcement_switch.hpp"
#include "engine/engine.hpp"
#include "store/sqlite_store.hpp"
#include "support/line/cut_store.hpp"
#include "support/line/scripted.hpp"
#include "support/line/stepped_clock.hpp"
#include "support/process.hpp"

namespace driftd::test {

/// All calls are for the test's thread. A second line on the same folder finds what the first one stored.
class EngineLine {
 public:
  explicit EngineLine(const TempDir& dir);
  ~EngineLine();
  EngineLine(const EngineLine&) = delete;
  EngineLine& operator=(const EngineLine&) = delete;

  asio::any_io_executor core() { return core_.get_executor(); }
  asio::any_io_executor io() { return io_.get_executor(); }

  /// Adds a sink that gets every event. Call it before start().
  void add_sink(std::string name, std::unique_ptr<core::Sink> sink);
  /// With `loops`, cycles and the watch run by themselves; otherwise only refresh() runs a cycle. Without `backends`,
  /// the config has none.
  void start(bool loops, core::Rules rules = {}, bool backends = true);
  /// The same with these backends, instead of the one and the sources.
  void start_with(std::vector<core::BackendSpec> specs, bool loops = false);
  /// The same with the backends that `specs` makes of the store's rows.
  void start_from(const std::function<std::vector<core::BackendSpec>(const std::vector<core::BackendRow>&)>& specs);
  CutStore& cut() { return *cut_; }  ///< the engine's way to the store; after start()

  std::vector<engine::Engine::BackendRefresh> settle();
  /// Runs one cycle of a backend. Empty means the backend `name`.
  engine::CycleReport refresh(bool full = true, const std::string& backend = {});
  Result<std::vector<core::Step>> explain(core::ResourceId id, std::string path = {});
  /// Returns the open drifts, with `all` also those that ended.
  std::vector<core::Drift> drifts(bool all = false);
  std::vector<core::StoredEvent> events();
  /// Decides about a drift. If the decision names no value, it applies to the current one.
  Result<core::Drift> decide(std::string drift, core::Decision decision);
  /// Decides about a drift with exactly this decision.
  Result<core::Drift> decide_as_is(std::string drift, core::Decision decision);
  std::string binding(const core::Drift& drift);
  std::vector<core::AuditRow> audit();
  store::SqliteStore& store();
  core::BackendView view();
  core::EnforcementView enforcement();
  engine::EnforcementSwitch& enforcement_switch() { return *enforcement_; }
  void pressure(bool hold);
  engine::Engine& engine() { return *engine_; }  ///< core thread
  void change(core::ResourceId id);              ///< makes the watch send this resource
  void replay(ScriptedSession::States states);   ///< makes the watch send all of these in one page
  void hint();                                   ///< makes the watch send a hint that names no resource

  /// Runs a coroutine on the core thread and waits for its result.
  template <class T>
  T wait(Task<T> task) {
    return asio::co_spawn(core_, std::move(task), asio::use_future).get();
  }
  /// Runs a function on the core thread and waits for its result.
  template <class F>
  std::invoke_result_t<F> on_core(F f) {
    std::packaged_task<std::invoke_result_t<F>()> task(std::move(f));
    auto result = task.get_future();
    asio::post(core_, [&task] { task(); });
    return result.get();
  }

  std::shared_ptr<SteppedClock> clock = std::make_shared<SteppedClock>();
  std::chrono::milliseconds interval{30'000};                             ///< before start()
  core::EnforceSettings enforce;                                          ///< before start()
  core::Budgets budgets;                                                  ///< before start()
  std::vector<core::Registrar> spoken_by{{"source", ""}, {"other", ""}};  ///< of every backend; before start()
  std::string name = "b", was, provider = "scripted", settings = "{}";    ///< before start()
  std::shared_ptr<ScriptedWorld> world = std::make_shared<ScriptedWorld>();
  /// The worlds of two more backends, `source` and `other`. Each runs if its world declares something at start().
  std::shared_ptr<ScriptedWorld> source = std::make_shared<ScriptedWorld>(), other = std::make_shared<ScriptedWorld>();

 private:
  void make_engine();

  core::NoMetrics metrics_;
  std::shared_ptr<engine::EnforcementSwitch> enforcement_ = std::make_shared<engine::EnforcementSwitch>();
  asio::io_context core_{1};
  asio::executor_work_guard<asio::io_context::executor_type> work_ = asio::make_work_guard(core_);
  asio::thread_pool store_pool_{1}, io_{4}, diff_{2};
  std::shared_ptr<std::vector<core::Route>> routes_ = std::make_shared<std::vector<core::Route>>();
  ScriptedFactory factory_;
  std::unique_ptr<store::SqliteStore> store_;
  std::unique_ptr<CutStore> cut_;
  std::unique_ptr<delivery::Relay> relay_;
  std::shared_ptr<engine::Context> context_;
  std::unique_ptr<engine::Engine> engine_;
  std::thread thread_;
};

}  // namespace driftd::test
