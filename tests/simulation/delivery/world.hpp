// SPDX-License-Identifier: Apache-2.0
// One agent (the real store, relay and sink runners) in a simulated world: time, threads, disk and receivers follow one
// seed.
#pragma once

#include <array>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <filesystem>
#include <memory>
#include <optional>
#include <utility>

#include "core/ports/control.hpp"
#include "delivery/backpressure.hpp"
#include "delivery/relay.hpp"
#include "simulation/delivery/disk.hpp"
#include "simulation/delivery/receivers.hpp"
#include "store/sqlite_store.hpp"

namespace driftd::sim {

/// A folder that is gone at the end; in memory if the machine has such a place.
class Folder {
 public:
  Folder();
  ~Folder();
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

/// The three executors of an agent, on one thread: whoever runs next is drawn. Destroying it drops what waits, as the
/// end of a process does.
class Executors {
 public:
  Executors();
  ~Executors();
  enum Which { core, store, io };
  asio::any_io_executor get(Which which) { return contexts_[which]->get_executor(); }
  /// Runs one handler. Returns false if none is ready.
  bool run_one(Which which) { return contexts_[which]->poll_one() != 0; }

 private:
  struct Context : asio::io_context {
    Context() : asio::io_context(BOOST_ASIO_CONCURRENCY_HINT_UNSAFE) {}  // one thread: no locks
    using asio::io_context::shutdown;  // all of them are shut down before one is destroyed
  };
  std::array<std::unique_ptr<Context>, 3> contexts_;
  std::vector<asio::executor_work_guard<asio::io_context::executor_type>> guards_;
};

/// What one process of the agent consists of.
struct Process {
  std::uint64_t number = 0;  ///< of this life; the memory of an earlier process may be used again
  Executors executors;
  std::unique_ptr<store::SqliteStore> store;
  std::unique_ptr<delivery::Relay> relay;
  bool stopped = false;  ///< Relay::stop() returned
  ~Process() {
    relay.reset();
    store.reset();
  }
};

/// Runs a life of an hour, and the time after it until everything arrived. One thread.
class World {
 public:
  explicit World(std::uint64_t seed);
  ~World();

  void run();
  const Oracle& oracle() const { return *oracle_; }
  int kills() const { return kills_; }

 private:
  struct Resource {
    std::int64_t revision = 0;
    std::string body;      ///< as the last answered commit wrote it
    std::string in_doubt;  ///< as a commit without an answer may have written it
  };
  struct Backend {
    core::BackendRow row;
    std::vector<Resource> resources;
    bool registered = false, busy = false;
  };

  /// A second file, which a reload adds and which leaves again.
  struct Extra {
    std::unique_ptr<LogFile> file;
    bool wanted = false, routed = false, busy = false;  ///< it is in the configuration; events go to it; it changes
    bool used = false;                                  ///< it was there at some time
  };

  // world.cpp: time and processes
  void at(Time when, std::function<void()> what) { plan_.emplace(when, std::move(what)); }
  void run_until(Time end);
  void run_ready();
  void start();
  void start_later(Duration in);
  void end_process(bool power_loss, const std::string& why);
  void drop_waiting_jobs();
  void life_is_over(bool power_loss);
  void stop_gracefully();
  Task<void> begin();
  Task<Status> take_over();
  Task<void> stop_relay();
  void tick();

  // provider.cpp: what is committed
  void plan_commits();
  void commit_later(std::size_t backend);
  void commit(std::size_t backend, int events);
  Task<void> commit_page(std::size_t backend, core::PageCommit page, Page number, std::vector<std::size_t> written);
  core::EventDraft draft(std::size_t backend, std::size_t resource, const std::string& token);
  Task<Status> load_resources(std::size_t backend);

  // upkeep.cpp: what the agent does beside delivering, and what persons ask of it
  void plan_upkeep();
  void upkeep_later();
  Task<void> upkeep();
  Task<Status> keep_up();
  void check_backpressure(std::size_t undelivered);
  void order_replay();
  Task<void> replay(core::Control::Replay request);
  void order_dead_letters();
  Task<void> handle_dead_letters(std::string verb, bool all);

  // retention.cpp: what leaves the store
  void plan_deletions();
  bool deletes() const { return retention_ || delivered_ || max_bytes_; }
  Task<Status> prune();
  Task<Status> shrink();
  void retention_begins(Nanos undelivered_before, Nanos delivered_before);
  void they_may_have_left();
  Task<Status> read_log();
  Task<Result<std::set<std::int64_t>>> numbers_in_log();

  // reload.cpp: a sink that comes and goes
  void change_extra();
  void when_nothing_is_committed(std::function<void()> what);
  void spawn_extra(Task<void> (World::*change)());
  Task<void> add_extra();
  Task<void> remove_extra();
  Task<void> pause_extra();
  void want_extra();

  // incidents.cpp: what goes wrong
  void plan_incidents();
  void begin_incident();
  void slow_disk();
  void slow_bus_that_loses_its_tail();
  void outage(Duration lasts);
  void heal();
  void finish();
  struct Books {
    std::vector<core::SinkTotals> totals;
    std::vector<core::DeadLetter> dead;
    std::optional<std::set<std::int64_t>> log;  ///< the events in the store; only if any was deleted
  };
  Books look_at_books();
  Task<void> read_books(std::optional<Books>& out);

  std::uint64_t pick(std::uint64_t below) { return random_() % below; }
  Duration between(Duration low, Duration high) {
    return Duration(std::uniform_int_distribution<Duration::rep>(low.count(), high.count())(random_));
  }
  Time now() const { return SimulatedTime::get().now(); }

  std::uint64_t seed_;
  std::mt19937_64 random_;
  Folder folder_;
  SimulatedClock clock_;
  store::Settings settings_;
  std::unique_ptr<Disk> disk_;
  std::unique_ptr<Stream> bus_;
  std::unique_ptr<Hook> hook_;
  std::unique_ptr<LogFile> log_;
  Extra extra_;
  std::vector<Receiver*> receivers_;
  std::unique_ptr<Oracle> oracle_;
  std::vector<Backend> backends_;
  std::uint64_t processes_ = 0;  ///< started so far
  std::unique_ptr<Process> process_;
  std::multimap<Time, std::function<void()>> plan_;
  std::optional<Time> ready_since_;  ///< the agent took over its store; empty: it is down or starting
  Time store_works_since_{}, store_free_at_{}, end_{};
  bool watched_ = true;  ///< the relay is watched every 5 s, as in the agent
  bool committing_ = true;
  std::optional<Duration> retention_, delivered_;  ///< of undelivered and of delivered events
  std::optional<std::int64_t> max_bytes_;
  std::set<std::int64_t> leaving_;  ///< what the store may be deleting now
  std::optional<delivery::BacklogLimits> limits_;
  bool held_ = false, upkeep_runs_ = false;  ///< `held_`: the backlog is full, nothing is committed
  int upkeep_rounds_ = 0;
  std::int64_t log_read_to_ = 0;
  std::optional<Time> idle_since_;  ///< nothing waits
  double poison_ = 0;               ///< share of events that the webhook refuses for good
  int pages_ = 0, kills_ = 0, starts_ = 0;
};

}  // namespace driftd::sim
