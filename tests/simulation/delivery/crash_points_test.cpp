// SPDX-License-Identifier: Apache-2.0
// The power is cut at every write and every sync of 500 transactions. What is left is opened by the real store.
#include <gtest/gtest.h>
#include <boost/asio/co_spawn.hpp>

#include "base/log.hpp"
#include "simulation/delivery/oracle.hpp"
#include "simulation/delivery/seams.hpp"
#include "simulation/delivery/world.hpp"

namespace driftd::sim {
namespace {

using Files = std::map<std::string, std::string>;

constexpr int kTransactions = 500, kCrashShards = 4;
constexpr std::uint64_t kSeed = 17;

core::BackendRow backend() {
  core::BackendRow row;
  row.uid = "b000000000000001";
  row.name = "orders";
  row.type = row.provider = "redis";
  row.registration = R"({"name":"orders"})";
  return row;
}

core::PageCommit registration() {
  core::PageCommit page;
  page.backend_uid = backend().uid;
  page.backend = backend();
  return page;
}

/// Two events of one resource, and the resource itself.
core::PageCommit page_of(int number, std::int64_t revision) {
  core::PageCommit page;
  page.backend_uid = backend().uid;
  core::ResourceWrite write;
  write.next.id = {"config", "r"};
  write.next.revision = revision;
  write.next.baseline = write.next.observed = R"({"page":)" + std::to_string(number) + "}";
  page.writes.push_back(std::move(write));
  for (int i = 0; i < 2; ++i) {
    core::BackendEvent event;
    event.backend_uid = backend().uid;
    event.backend_name = backend().name;
    event.backend_type = event.provider = event.source = "redis";
    event.type = core::ChangeType::config_drift_detected;
    event.what = "config.updated";
    event.resource = core::ResourceId{"config", "r"};
    event.drift_id = token_of(number, i);
    page.events.push_back({std::move(event), {"bus"}});
  }
  return page;
}

/// A store and what it answered.
class Writer {
 public:
  Writer(store::Settings settings, const Clock& clock) : settings_(std::move(settings)), clock_(clock) {}
  Status open() {
    auto opened =
        store::SqliteStore::open(settings_, executors_.get(Executors::store), executors_.get(Executors::io), clock_);
    if (!opened) return fail(opened.error());
    store_ = std::move(*opened);
    return {};
  }
  template <class T>
  T wait(Task<T> task) {
    std::optional<T> out;
    asio::co_spawn(executors_.get(Executors::core), std::move(task), [&out](std::exception_ptr error, T value) {
      if (error) std::rethrow_exception(error);
      out = std::move(value);
    });
    while (!out) {
      for (const auto which : {Executors::core, Executors::store, Executors::io}) executors_.run_one(which);
    }
    return std::move(*out);
  }
  store::SqliteStore* operator->() { return store_.get(); }

 private:
  store::Settings settings_;
  const Clock& clock_;
  Executors executors_;
  std::unique_ptr<store::SqliteStore> store_;
};

/// What the store had answered when the power was cut, and what was under way.
struct Moment {
  Files files;
  std::uint64_t change = 0;
  int pages = 0;                    ///< answered
  std::int64_t low_water = 0;       ///< the same
  std::int64_t next_low_water = 0;  ///< if it was under way
};

class CrashPoints : public testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    log::configure({.level = "off"});
    seed_random_bytes(kSeed);
    settings_.data_dir = folder_.path() / "data";
    settings_.given = store::GivenKey{store::make_key().value(), "the simulation"};
    disk_ = std::make_unique<Disk>(settings_.data_dir, kSeed + static_cast<std::uint64_t>(GetParam()));
    writer_ = std::make_unique<Writer>(settings_, clock_);
    ASSERT_TRUE(writer_->open());
    ASSERT_TRUE(writer_->wait((*writer_)->commit(registration())));
    ASSERT_TRUE(writer_->wait(writer_->operator->()->open_sink("bus")));
    disk_->before_change = [this] { cut_here(); };
  }
  void TearDown() override {
    disk_->before_change = nullptr;
    disk_->kill();
    writer_.reset();
  }

  void cut_here() {
    const auto shard = static_cast<std::uint64_t>(GetParam());
    if (disk_->changes() % kCrashShards != shard) return;
    for (const auto survival : {Survival::nothing, Survival::some}) {
      const bool same = std::exchange(durable_, disk_->durable_changes()) == disk_->durable_changes();
      if (survival == Survival::nothing && same) continue;
      Moment moment = now_;
      moment.files = disk_->after_power_loss(survival);
      moment.change = disk_->changes();
      std::string seen;
      for (const char* name : {"store.db", "store.db-wal", "store.db-journal", "store.mark"})
        seen += std::to_string(std::hash<std::string>{}(moment.files[name])) + " ";
      if (!seen_.insert(seen).second) continue;
      moments_.push_back(std::move(moment));
    }
  }

  /// Opens what was left of each moment: every answered page is there, and the one under way whole or not at all.
  void check_moments() {
    for (const auto& moment : std::exchange(moments_, {})) {
      ++checked_;
      Folder folder;
      store::Settings settings = settings_;
      settings.data_dir = folder.path() / "data";
      std::filesystem::create_directory(settings.data_dir);
      std::filesystem::permissions(settings.data_dir, std::filesystem::perms::owner_all);
      Disk left(settings.data_dir, kSeed);
      left.loses_power = false;
      left.install(moment.files);
      const std::string where = "cut before change " + std::to_string(moment.change);
      Writer writer(settings, clock_);
      const Status opened = writer.open();
      ASSERT_TRUE(opened) << where << ": " << opened.error().message;
      check(writer, moment, where);
      if (HasFailure()) return;
    }
  }

  void check(Writer& writer, const Moment& moment, const std::string& where) {
    const auto events = writer.wait(writer->fetch("bus", 0, 10 * kTransactions));
    ASSERT_TRUE(events) << where;
    const auto count = static_cast<int>(events->size());
    const bool whole = count == 2 * moment.pages || count == 2 * (moment.pages + 1);
    ASSERT_TRUE(whole) << where << ": " << moment.pages << " pages of 2 events were answered, and the store has "
                       << count << " events";
    for (int i = 0; i < count; ++i)
      ASSERT_NE((*events)[static_cast<std::size_t>(i)].payload.find(token_of(i / 2 + 1, i % 2)), std::string::npos)
          << where;
    const auto stored = writer.wait(writer->load(backend().uid, {{"config", "r"}}));
    ASSERT_TRUE(stored) << where;
    EXPECT_EQ((*stored)[0].revision, count / 2) << where << ": the resource and its events are of different pages";
    const auto cursor = writer.wait(writer->open_sink("bus"));
    ASSERT_TRUE(cursor) << where;
    EXPECT_TRUE(cursor->low_water == moment.low_water || cursor->low_water == moment.next_low_water)
        << where << ": the cursor is " << cursor->low_water;
    const auto next = writer.wait(writer->commit(page_of(count / 2 + 1, count / 2)));
    ASSERT_TRUE(next) << where;
    EXPECT_EQ(next->events[0].stamp.incarnation, incarnation_) << where << ": no commit was lost";
  }

  void commit_page(int number) {
    const auto result = writer_->wait((*writer_)->commit(page_of(number, number - 1)));
    ASSERT_TRUE(result);
    now_.low_water = now_.next_low_water;  // what was committed before is on the disk, too
    incarnation_ = result->events[0].stamp.incarnation;
    now_.pages = number;
    newest_ = result->events[1].stamp.seq;
  }

  void move_cursor(bool durable) {
    core::SinkSettlement settlement;
    settlement.sink = "bus";
    settlement.low_water = now_.next_low_water = newest_;
    settlement.durable = durable;
    ASSERT_TRUE(writer_->wait((*writer_)->settle(std::move(settlement))));
    if (durable) now_.low_water = newest_;
  }

  Folder folder_;
  SimulatedClock clock_;
  store::Settings settings_;
  std::unique_ptr<Disk> disk_;
  std::unique_ptr<Writer> writer_;
  Moment now_;
  std::set<std::string> seen_;
  std::uint64_t durable_ = 0;  ///< durable_changes() of the disk when the power was cut last
  std::vector<Moment> moments_;
  std::int64_t newest_ = 0;
  std::uint64_t incarnation_ = 0;
  int checked_ = 0;
};

TEST_P(CrashPoints, LoseNoCommittedEvent) {
  for (int number = 1; number <= kTransactions && !HasFailure(); ++number) {
    commit_page(number);
    check_moments();
    if (number % 10 == 0) move_cursor(number % 20 == 0);
    check_moments();
  }
  RecordProperty("changes", static_cast<int>(disk_->changes()));
  RecordProperty("power_losses", checked_);
  std::printf("%d power losses at a %dth of %llu writes and syncs\n", checked_, kCrashShards,
              static_cast<unsigned long long>(disk_->changes()));
  EXPECT_GT(disk_->changes(), 10U * kTransactions);
  EXPECT_GT(checked_, 2 * kTransactions);
}
INSTANTIATE_TEST_SUITE_P(Lives, CrashPoints, testing::Range(0, kCrashShards));

/// One store and its processes, one after the other.
class OneStore : public testing::Test {
 protected:
  OneStore() : disk((folder_.path() / "data").string(), kSeed) {
    log::configure({.level = "off"});
    seed_random_bytes(kSeed);
    settings_.data_dir = folder_.path() / "data";
    settings_.given = store::GivenKey{store::make_key().value(), "the simulation"};
  }
  ~OneStore() override {
    disk.kill();
    writer.reset();
  }
  void open() {
    writer = std::make_unique<Writer>(settings_, clock_);
    ASSERT_TRUE(writer->open());
  }
  /// Kills the process.
  void end() {
    disk.kill();
    writer.reset();
    disk.boot();
  }

 private:
  Folder folder_;
  SimulatedClock clock_;
  store::Settings settings_;

 protected:
  Disk disk;
  std::unique_ptr<Writer> writer;
};
class Settlement : public OneStore {};
class FailedSync : public OneStore {};

/// ADR 0023: a kill undoes nothing of what was delivered, a power loss nothing that was saved 100 ms after a sync.
TEST_F(Settlement, OfDeliveredEventsOutlivesAKillAndIsSoonOnTheDisk) {
  const auto low_water = [&] { return writer->wait((*writer)->open_sink("bus"))->low_water; };
  const auto settle = [&](std::int64_t to) {
    core::SinkSettlement settlement;
    settlement.sink = "bus";
    settlement.low_water = to;
    settlement.durable = false;
    ASSERT_TRUE(writer->wait((*writer)->settle(std::move(settlement))));
  };
  ASSERT_NO_FATAL_FAILURE(open());
  (void)low_water();
  ASSERT_TRUE(writer->wait((*writer)->commit(registration())));
  for (int number = 1; number <= 5; ++number) ASSERT_TRUE(writer->wait((*writer)->commit(page_of(number, number - 1))));
  const auto syncs = disk.syncs();
  settle(1);
  EXPECT_EQ(disk.syncs(), syncs) << "it waited for the disk";
  end();
  ASSERT_NO_FATAL_FAILURE(open());
  EXPECT_EQ(low_water(), 1);
  SimulatedTime::get().move_to(SimulatedTime::get().now() + std::chrono::milliseconds(101));
  settle(2);
  settle(3);
  end();
  disk.lose_power();
  ASSERT_NO_FATAL_FAILURE(open());
  const std::int64_t at = low_water();
  EXPECT_GE(at, 2);
  const auto events = writer->wait((*writer)->fetch("bus", at, 100));
  ASSERT_TRUE(events);
  EXPECT_EQ(events->size(), static_cast<std::size_t>(10 - at));
}

/// The reason of write_log_again(): a commit behind a page that the kernel takes for written.
TEST_F(FailedSync, LeavesNoHoleThatALaterPowerLossFinds) {
  ASSERT_NO_FATAL_FAILURE(open());
  ASSERT_TRUE(writer->wait((*writer)->commit(registration())));
  disk.faults.sync_fails = 1;
  EXPECT_THROW((void)writer->wait((*writer)->commit(page_of(1, 0))), ProcessEnded);
  disk.faults = {};
  end();
  ASSERT_NO_FATAL_FAILURE(open());
  const auto stored = writer->wait((*writer)->load(backend().uid, {{"config", "r"}}));
  const auto revision = (*stored)[0].revision;
  ASSERT_TRUE(writer->wait((*writer)->commit(page_of(2, revision))));
  end();
  disk.lose_power();
  ASSERT_NO_FATAL_FAILURE(open());
  const auto events = writer->wait((*writer)->fetch("bus", 0, 100));
  ASSERT_TRUE(events) << "the page that was answered is gone, with the sink that its events created";
  EXPECT_EQ(events->size(), static_cast<std::size_t>(2 * revision + 2));
}

}  // namespace
}  // namespace driftd::sim
