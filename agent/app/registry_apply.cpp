// SPDX-License-Identifier: Apache-2.0
// Makes the changes that a reload or a call wants. A backend whose provider hangs delays its caller, and the changes
// behind it, for kPatience at most: its change goes on by itself, and until then another change of it waits.
#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <utility>

#include "app/registry.hpp"
#include "base/fatal.hpp"
#include "base/log.hpp"
#include "engine/backend_rows.hpp"
#include "engine/runner.hpp"

namespace driftd::app {
namespace {

constexpr std::chrono::milliseconds kPatience{2'500};  // a worker that hangs is stopped within 2 s
constexpr std::chrono::seconds kRetry{30};

}  // namespace

struct Registry::Scanning {
  explicit Scanning(asio::any_io_executor core) : ended(std::move(core)) {}
  bool over = false;
  asio::steady_timer ended;
};

Task<void> Registry::scan_into(std::shared_ptr<Scanning> to) {
  plugins_ = co_await needs_.sessions.scan();
  scanning_.reset();
  to->over = true;
  to->ended.cancel();
}

Task<Registry::Plugins> Registry::scan() {
  const auto until = std::chrono::steady_clock::now() + kPatience;
  for (bool own = false, late = false; !own && !late;) {  // one that began earlier may not know the newest files
    own = scanning_ == nullptr;
    if (own) scanning_ = std::make_shared<Scanning>(needs_.executors.core.get_executor());
    const auto to = scanning_;  // it may be over at once
    if (own) asio::co_spawn(needs_.executors.core, scan_into(to), fatal);
    while (!to->over && std::chrono::steady_clock::now() < until) {
      to->ended.expires_at(until);
      co_await to->ended.async_wait(asio::as_tuple(asio::use_awaitable));
    }
    late = !to->over;
  }
  co_return plugins_;
}

struct Registry::Applying {
  struct Names {
    std::string is, was;  ///< `was`: empty unless it is renamed
  };
  Applying(asio::any_io_executor core, Plan asked) : plan(std::move(asked)), woken(std::move(core)) {
    for (const auto& change : plan.changes) names.push_back({change.spec.name, change.leaves ? "" : change.spec.was});
  }

  Plan plan;
  std::vector<Names> names;  ///< of the changes
  std::set<std::size_t> under_way;
  asio::steady_timer woken;
  Outcome outcome;
  bool answered = false;
};

Task<Registry::Outcome> Registry::apply(Plan plan) {
  const auto all = std::make_shared<Applying>(needs_.executors.core.get_executor(), std::move(plan));
  all->outcome.later = std::move(all->plan.later);
  for (const auto& name : all->plan.unchanged) {
    behind_ = behind_ || busy_.contains(name);
    const config::BackendEntry& entry = all->plan.entries.at(name);
    const auto known = entries_.find(name);
    if (known != entries_.end()) known->second.spec.defined_at = entry.spec.defined_at;
    needs_.engine.set_defined_at(name, entry.spec.defined_at);
  }
  for (std::size_t i = 0; i < all->names.size(); ++i) {
    const auto& [name, was] = all->names[i];
    if (busy_.contains(name) || busy_.contains(was)) {
      behind_ = true;
      all->outcome.later.push_back(all->plan.lines[i]);
      continue;
    }
    busy_.insert(name);
    if (!was.empty()) busy_.insert(was);
    all->under_way.insert(i);
    const auto entry = all->plan.entries.find(name);
    if (entry == all->plan.entries.end()) continue;
    needs_.uses->set(entry->second);
    needs_.uses->protect(entry->second.secret_files);
  }
  for (const std::size_t i : std::set<std::size_t>(all->under_way)) {
    asio::co_spawn(needs_.executors.core, change_one(all, i), fatal);
  }
  const auto until = std::chrono::steady_clock::now() + kPatience;
  while (!all->under_way.empty() && std::chrono::steady_clock::now() < until) {
    all->woken.expires_at(until);
    co_await all->woken.async_wait(asio::as_tuple(asio::use_awaitable));
  }
  all->answered = true;
  for (const std::size_t i : all->under_way) all->outcome.later.push_back(all->plan.lines[i]);
  co_return std::move(all->outcome);
}

Task<void> Registry::change_one(std::shared_ptr<Applying> all, std::size_t at) {
  std::vector<engine::Engine::Change> one;
  one.push_back(std::move(all->plan.changes[at]));
  const auto changed = co_await needs_.engine.apply(std::move(one));
  settle(*all, at, changed.front());
}

void Registry::settle(Applying& all, std::size_t at, const Status& changed) {
  const auto& [name, was] = all.names[at];
  const std::string& line = all.plan.lines[at];
  const auto next = all.plan.entries.find(name);
  const auto known = entries_.find(name);
  if (!changed) {
    needs_.uses->erase(name);
    if (known != entries_.end()) needs_.uses->set(known->second);
  } else if (next != all.plan.entries.end()) {
    if (known == entries_.end()) entries_.erase(next->second.spec.was);
    entries_[name] = next->second;
  } else {
    entries_.erase(name);
    needs_.uses->erase(name);
  }
  busy_.erase(name);
  busy_.erase(was);
  all.under_way.erase(at);
  all.woken.cancel();
  const engine::Runner* runner = needs_.engine.find(name);
  behind_ = behind_ || (!changed && runner != nullptr && runner->is_stopping());  // the store failed in the middle
  if (!all.answered) {
    changed ? all.outcome.done.push_back(line) : all.outcome.failed.push_back(line + ": " + changed.error().message);
    return;
  }
  tried_ = {};
  behind_ = behind_ || !changed;
  if (changed) log::room("config").info("{}: done now", line);
  if (!changed && !stopping_) log::room("config").error("{}: {}; it is tried again", line, changed.error().message);
}

std::vector<config::CredentialUse> Registry::references(const std::string& backend) const {
  const auto known = entries_.find(backend);
  return known == entries_.end() ? std::vector<config::CredentialUse>() : known->second.references;
}

Task<Error> Registry::failure(std::string name, std::string definition, std::string why) {
  const auto rows = co_await needs_.store.backends();
  if (!rows) {
    behind_ = true;
    co_return Error{Code::unavailable, "whether it was changed is not known: " + why +
                                           "; and the store: " + rows.error().message + "; read the backend again"};
  }
  if (engine::stored_definition(*rows, name) != definition)
    co_return Error{Code::unavailable, "nothing was changed: " + why};
  behind_ = true;
  co_return Error{Code::unavailable, "the change is stored, but does not run yet: " + why +
                                         "; the agent tries again every 30 seconds, and the next start does it too"};
}

Task<void> Registry::retry_faulty() {
  const auto now = std::chrono::steady_clock::now();
  const bool faulty =
      std::any_of(entries_.begin(), entries_.end(), [](const auto& one) { return !one.second.spec.fault.empty(); });
  if ((!faulty && !behind_) || now - tried_ < kRetry) co_return;
  tried_ = now;
  const bool was_behind = std::exchange(behind_, false);
  const Plugins plugins = co_await scan();
  auto again = co_await plan(std::make_shared<const config::Config>(config_), plugins);
  if (!again) {
    behind_ = behind_ || was_behind;
    log::room("config").error("what runs cannot be compared with what should run: {}; it is tried again in {} seconds",
                              again.error().message, kRetry.count());
    co_return;
  }
  const Outcome outcome = co_await apply(std::move(*again));
  behind_ = behind_ || (was_behind && !outcome.failed.empty());
  for (const auto& line : outcome.failed) log::room("config").error("{}", line);
  for (const auto& line : outcome.done)
    log::room("config").info("{}: {}", line, was_behind ? "done" : "it can be used again");
}

Task<void> Registry::mend() {
  if (needs_.changing.locked() || stopping_) co_return;
  const AsyncMutex::Guard held = co_await needs_.changing.lock();
  co_await retry_faulty();
  if (stopping_) co_return;
  std::set<std::string> under_way = busy_;  // nothing joins them while this holds `changing`
  const Status again = co_await needs_.engine.restart_stopped(std::move(under_way));
  if (!again) log::room("engine").error("a backend that has stopped cannot go on: {}", again.error().message);
}

}  // namespace driftd::app
