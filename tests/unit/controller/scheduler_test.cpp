// SPDX-License-Identifier: Apache-2.0
#include "controller/scheduler.hpp"

#include <gtest/gtest.h>

#include <stdexcept>

#include "world.hpp"

namespace driftd::controller {
namespace {

struct Scheduling : testing::Test {
  /// Runs what is due until `end`, and notes at which second what ran.
  void run_for(Scheduler& scheduler, Duration time) {
    const Time end = clock.now() + time;
    while (scheduler.next_due() <= end) {
      clock.pass_until(scheduler.next_due());
      scheduler.run_due();
    }
    clock.pass_until(end);
  }
  std::string second() const { return std::to_string((clock.now() - start) / 1s); }
  std::function<Status(std::stop_token)> noted(const std::string& name) {
    return [this, name](const std::stop_token&) -> Status {
      runs.push_back(name + " " + second());
      return {};
    };
  }

  Settings settings;
  StandingClock clock;
  Lines lines;
  const Time start = clock.now();
  std::vector<std::string> runs;
};

using Words = std::vector<std::string>;

TEST_F(Scheduling, RunsEachJobAtItsInterval) {
  Jobs jobs;
  jobs.resync = [this] {
    runs.push_back("resync " + second());
    return std::size_t{12};
  };
  jobs.cleanup = noted("cleanup");
  Scheduler scheduler(settings, clock, jobs, lines.log());
  run_for(scheduler, 5min);
  ASSERT_EQ(runs.size(), 11U);
  EXPECT_EQ(runs.front(), "resync 30");
  EXPECT_EQ(runs[1], "resync 60");
  EXPECT_EQ(runs.back(), "cleanup 300");
  EXPECT_EQ(scheduler.metrics().cycles, 10U);
  EXPECT_EQ(scheduler.metrics().cleanups, 1U);
  EXPECT_EQ(scheduler.metrics().processed_this_cycle, 12U);
  EXPECT_EQ(scheduler.metrics().scheduler_interval, 30s);
}

TEST_F(Scheduling, ASourceWithoutWatchIsPolledAtOnceAndThenAtItsInterval) {
  Jobs jobs;
  jobs.poll = noted("poll");
  Scheduler scheduler(settings, clock, jobs, lines.log());
  run_for(scheduler, 12s);
  EXPECT_EQ(runs, (Words{"poll 0", "poll 5", "poll 10"}));
}

TEST_F(Scheduling, WithoutJobsThereIsNothingToDo) {
  Scheduler scheduler(settings, clock, {}, lines.log());
  EXPECT_EQ(scheduler.next_due(), Time::max());
}

TEST_F(Scheduling, AJobThatTakesTooLongRunsOnceWhenItEnds) {
  Jobs jobs;
  jobs.cleanup = [this](const std::stop_token&) -> Status {
    runs.push_back("cleanup " + second());
    if (runs.size() == 1) clock.pass(20min);
    return {};
  };
  Scheduler scheduler(settings, clock, jobs, lines.log());
  run_for(scheduler, 31min);
  EXPECT_EQ(runs, (Words{"cleanup 300", "cleanup 1500", "cleanup 1800"}));
}

TEST_F(Scheduling, AJobThatFailsOrThrowsRunsAgainTheNextTime) {
  Jobs jobs;
  jobs.resync = [this]() -> std::size_t {
    runs.push_back("resync " + second());
    throw std::runtime_error("no list");
  };
  jobs.cleanup = [this](const std::stop_token&) -> Status {
    if (runs.size() > 15) throw 7;
    return tl::unexpected(std::string("denied"));
  };
  Scheduler scheduler(settings, clock, jobs, lines.log());
  run_for(scheduler, 5min);
  EXPECT_EQ(runs.size(), 10U);
  EXPECT_EQ(scheduler.metrics().failures, 11U);
  EXPECT_EQ(scheduler.metrics().last_error, "cleanup: denied");
  EXPECT_TRUE(lines.have("resync failed: it threw: no list; it is done again the next time"));
  run_for(scheduler, 5min);
  EXPECT_EQ(scheduler.metrics().last_error, "cleanup: it threw an exception of an unknown type");
}

TEST_F(Scheduling, CountsByPhaseAfterEachResync) {
  Jobs jobs;
  jobs.resync = [] { return std::size_t{3}; };
  jobs.count_by_phase = [] { return std::map<std::string, std::size_t>{{"Discovered", 2}, {"Error", 1}}; };
  Scheduler scheduler(settings, clock, jobs, lines.log());
  EXPECT_TRUE(scheduler.metrics().instances_by_phase.empty());
  run_for(scheduler, 30s);
  EXPECT_EQ(scheduler.metrics().instances_by_phase.at("Discovered"), 2U);
  EXPECT_EQ(scheduler.metrics().instances_by_phase.at("Error"), 1U);
}

}  // namespace
}  // namespace driftd::controller
