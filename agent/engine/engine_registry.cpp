// SPDX-License-Identifier: Apache-2.0
// Changes of the registry while the agent runs, whatever their source: the configuration, or a call of gRPC. What the
// store holds afterwards is what a restart would have made of it. A runner is stopped before the registry mutex is
// locked, because its cycle may wait for the mutex.
#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <utility>

#include "base/fatal.hpp"
#include "base/log.hpp"
#include "engine/backend_rows.hpp"
#include "engine/context.hpp"
#include "engine/engine.hpp"
#include "engine/runner.hpp"
#include "engine/unregistration.hpp"

namespace driftd::engine {
namespace {

Status stopping() { return fail(Code::cancelled, "the agent stops: the registry was not changed"); }

/// Returns false if a change of this backend, or the beginning of its end, is durable that its runner knows nothing of.
bool is_as_stored(const core::BackendRow& ran, const std::vector<core::BackendRow>& rows) {
  return std::any_of(rows.begin(), rows.end(), [&](const core::BackendRow& row) {
    return row.uid == ran.uid && !row.deleted_ns && row.name == ran.name && row.registration == ran.registration &&
           definition_of(row) == definition_of(ran);
  });
}

}  // namespace

Task<std::vector<Status>> Engine::apply(std::vector<Change> changes) {
  std::vector<Status> out(changes.size());
  int left = static_cast<int>(changes.size());
  asio::steady_timer done(context_->core, asio::steady_timer::time_point::max());
  for (std::size_t i = 0; i < changes.size(); ++i) {
    asio::co_spawn(context_->core, apply_one(std::move(changes[i]), out[i], left, done), fatal);
  }
  while (left > 0) co_await done.async_wait(asio::as_tuple(asio::use_awaitable));
  co_return out;
}

Task<void> Engine::apply_one(Change change, Status& out, int& left, asio::steady_timer& done) {
  const auto known = runners_.find(change.spec.name);
  const bool runs = known != runners_.end() && !known->second->is_stopping() && !discovered_.contains(known->first);
  if (change.leaves) {
    out = co_await remove(std::move(change));
  } else if (runs && change.edit != core::BackendEdit::reopen) {
    out = co_await change_in_place(known->second, std::move(change));
  } else {
    out = co_await reopen(std::move(change));
  }
  if (--left == 0) done.cancel();
}

Task<Status> Engine::change_in_place(std::shared_ptr<Runner> runner, Change change) {
  const bool discovers = change.spec.discover;
  DRIFTD_CO_CHECK(co_await runner->reload(std::move(change.spec), std::move(change.audit)));
  if (discovers) co_return Status{};
  const AsyncMutex::Guard held = co_await registry_mutex_.lock();
  if (stopping_) co_return Status{};  // the change is durable, and the next start does the rest
  const Status rest = co_await remove_found_by(runner->ledger().row().uid);
  leave_rest(rest);
  co_return Status{};
}

void Engine::leave_rest(const Status& rest) {
  if (rest) return;
  has_rest_ = true;
  log::room("engine").error(
      "the registry was changed, but what follows from it failed: {}; it is tried again, and the next start does it "
      "too",
      rest.error().message);
}

Task<Status> Engine::do_rest() {
  if (!std::exchange(has_rest_, false)) co_return Status{};  // a change beside this may leave more
  const auto all = runners_;
  {
    const AsyncMutex::Guard held = co_await registry_mutex_.lock();
    if (stopping_) co_return Status{};
    std::set<std::string> uids;
    for (const auto& [name, entry] : discovered_) uids.insert(entry.source_uid);
    for (const auto& [name, runner] : runners_) {
      if (runner->ledger().spec().discover) uids.erase(runner->ledger().row().uid);
    }
    for (const auto& uid : uids) DRIFTD_CO_CHECK(co_await remove_found_by(uid));
  }
  for (const auto& [name, runner] : all) {
    const auto now = runners_.find(name);
    if (now != runners_.end() && now->second == runner) DRIFTD_CO_CHECK(co_await follow_name(runner));
  }
  DRIFTD_CO_CHECK(co_await restore_registrars());
  co_return Status{};
}

/// Tells the backends that a source discovered its name, if it was renamed.
Task<Status> Engine::follow_name(std::shared_ptr<Runner> source) {
  const std::string name = source->ledger().spec().name;
  std::vector<std::shared_ptr<Runner>> found;
  for (const auto& [other, entry] : discovered_) {
    const auto& child = runners_.at(other);
    if (entry.source_uid == source->ledger().row().uid && child->ledger().spec().discovered_by != name)
      found.push_back(child);
  }
  for (const auto& child : found) {
    core::BackendSpec spec = child->ledger().spec();
    spec.discovered_by = name;
    DRIFTD_CO_CHECK(co_await child->reregister(std::move(spec)));
  }
  co_return Status{};
}

Task<Status> Engine::reopen(Change change) {
  const std::string name = change.spec.name;
  auto known = runners_.find(name);
  if (known == runners_.end() && !change.spec.was.empty()) known = runners_.find(change.spec.was);
  const std::shared_ptr<Runner> runner = known == runners_.end() ? nullptr : known->second;
  if (runner) co_await runner->stop();
  {
    const AsyncMutex::Guard held = co_await registry_mutex_.lock();
    if (stopping_) co_return stopping();
    DRIFTD_CO_CHECK(co_await replace(runner, std::move(change)));
  }
  co_await go_on(name);
  co_return Status{};
}

Task<Status> Engine::replace(std::shared_ptr<Runner> runner, Change change) {
  const std::string name = change.spec.name;
  const std::string former = runner ? runner->ledger().spec().name : name;
  auto rows = co_await rows_by_age(context_->store);
  Status registered;
  if (rows) {
    registered = co_await register_backend(std::move(change.spec), *rows, std::move(change.audit));
  } else {
    registered = fail(rows.error());
  }
  if (!registered) {
    if (runner && !discovered_.contains(former)) co_await run_again(runner);
    co_return registered;
  }
  discovered_.erase(former);  // the configuration names it now
  reported_bytes_.forget(former);
  if (former != name) rename(former, name);
  co_return Status{};
}

void Engine::rename(const std::string& former, const std::string& name) {
  runners_.erase(former);
  context_->metrics.forget(former);
  if (auto registrar = registrars_.extract(former)) {
    registrar.key() = name;
    registrars_.insert(std::move(registrar));
  }
  for (auto& [backend, registrar] : registrars_) {
    if (registrar.source == former) registrar.source = name;
  }
  if (auto claims = current_claims_.extract(former)) {
    claims.key() = name;
    current_claims_.insert(std::move(claims));
  }
}

/// What a start does once all are registered: trust, then the loops, then what was waiting for this backend.
Task<void> Engine::go_on(std::string name) {
  const auto runner = runners_.at(name);
  if (!runner->ledger().spec().discover) {
    const AsyncMutex::Guard held = co_await registry_mutex_.lock();
    if (stopping_) co_return;  // the change is durable, and the next start does the rest
    const Status removed = co_await remove_found_by(runner->ledger().row().uid);
    leave_rest(removed);
  }
  const Status followed = co_await follow_name(runner);
  leave_rest(followed);
  const Status trusted = co_await restore_registrars();
  leave_rest(trusted);
  if (stopping_) co_return;
  if (loops_) runner->start();
  for (auto& report : pending_reports_.extract(name)) (void)take_report(std::move(report));
  const auto registrar = registrars_.find(name);
  // Its session has not got the last report: the source reports it again.
  if (registrar != registrars_.end()) declared(registrar->second.source);
  claims_decided(name);  // it may trust more sources now, whose cursors say nothing about reports that it rejected
}

/// After a failed change. If this fails too, the runner stays stopped, and restart_stopped() tries again.
Task<void> Engine::run_again(std::shared_ptr<Runner> runner) {
  const core::BackendSpec spec = runner->ledger().spec();
  auto rows = co_await rows_by_age(context_->store);
  Status again;
  if (rows) {
    again = co_await register_backend(spec, *rows);
  } else {
    again = fail(rows.error());
  }
  if (again && loops_) runners_.at(spec.name)->start();
  if (!again) log::room("engine").error("{}: it has stopped, and cannot go on: {}", spec.name, again.error().message);
}

Task<Status> Engine::restart_stopped(std::set<std::string> except) {
  if (stopping_) co_return Status{};
  const Status rest = co_await do_rest();
  has_rest_ = has_rest_ || !rest;
  std::vector<std::shared_ptr<Runner>> all;
  for (const auto& [name, runner] : runners_) {
    if (runner->is_stopping() && !discovered_.contains(name) && !except.contains(name)) all.push_back(runner);
  }
  if (all.empty()) co_return rest;
  DRIFTD_CO_TRY(const auto rows, co_await context_->store.backends());
  std::erase_if(all, [&](const auto& runner) { return !is_as_stored(runner->ledger().row(), rows); });
  for (const auto& runner : all) {
    Change change{runner->ledger().spec()};
    const Status again = co_await reopen(std::move(change));  // a failure was logged
    if (again) log::room("engine").info("{}: it runs again", runner->ledger().spec().name);
  }
  co_return rest;
}

Task<Status> Engine::remove(Change change) {
  const auto known = runners_.find(change.spec.name);
  if (known == runners_.end()) co_return Status{};
  const std::shared_ptr<Runner> runner = known->second;
  const std::string name = known->first;
  co_await runner->stop();
  {
    const AsyncMutex::Guard held = co_await registry_mutex_.lock();
    if (stopping_) co_return stopping();
    Status down = co_await remove_found_by(runner->ledger().row().uid);
    if (down) {
      const Unregistration why{std::move(change.cause), std::move(change.audit)};
      down = co_await unregister_backend(context_, runner->ledger().row(), why);
      if (!down && down.error().code == Code::conflict) {  // a decision was committed meanwhile; none can follow
        const Unregistration again{why.cause, {}};
        down = co_await unregister_backend(context_, runner->ledger().row(), again);
      }
    }
    if (!down) {
      co_await run_again(runner);
      co_return down;
    }
    forget(name);
  }
  const Status rest = co_await restore_registrars();  // those that it was are given up
  leave_rest(rest);
  co_return Status{};
}

Task<Status> Engine::remove_found_by(std::string uid) {
  std::vector<std::string> names;
  for (const auto& [name, entry] : discovered_) {
    if (entry.source_uid == uid) names.push_back(name);
  }
  for (const auto& name : names) DRIFTD_CO_CHECK(co_await remove_discovered(name));
  co_return Status{};
}

void Engine::forget(const std::string& name) {
  runners_.erase(name);
  discovered_.erase(name);
  registrars_.erase(name);
  std::erase_if(registrars_, [&](const auto& one) { return one.second.source == name; });
  current_claims_.erase(name);
  rejected_sources_.erase(name);
  reported_bytes_.forget(name);
  pending_reports_.listed(name);
}

}  // namespace driftd::engine
