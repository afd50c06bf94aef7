// SPDX-License-Identifier: Apache-2.0
#include "host/worker_budgets.hpp"

#include <gtest/gtest.h>
#include <boost/asio/io_context.hpp>

namespace driftd::host {
namespace {

using std::chrono::milliseconds;

class WorkerBudgetsTest : public testing::Test {
 protected:
  static core::Budgets budgets() {
    core::Budgets out;
    out.rss_bytes = 100ll << 20;
    out.threads = 10;
    out.cpu = milliseconds(1'000);
    out.call = milliseconds(60'000);
    return out;
  }
  /// Adds a running call that began when the worker had used `cpu`.
  void add_call(ipc::FrameType type, milliseconds cpu) {
    const auto call = std::make_shared<Call>(context_.get_executor(), running_.size() + 1, type, Steady::now());
    call->cpu_at_begin = cpu;
    running_[call->id] = call;
  }
  /// Returns the message about the budget that is exceeded; empty if none is.
  std::string message_of(const Usage& used) {
    const auto exceeded = budgets_.check(used, running_);
    return exceeded ? exceeded->budget + ": " + exceeded->message : std::string();
  }

  asio::io_context context_;
  Calls running_;
  WorkerBudgets budgets_{budgets()};
};

TEST_F(WorkerBudgetsTest, AWorkerWithinItsBudgetsExceedsNone) {
  EXPECT_EQ(message_of({100ll << 20, milliseconds(500), 10}), "");
  EXPECT_EQ(budgets_.rss_bytes(), 100ll << 20);
}

TEST_F(WorkerBudgetsTest, MemoryAndThreadsAreNamedWithTheirBudget) {
  EXPECT_EQ(message_of({101ll << 20, {}, 1}), "rss: RSS 101 MiB over the budget of 100 MiB");
  EXPECT_EQ(message_of({0, {}, 11}), "threads: 11 threads over the budget of 10");
}

TEST_F(WorkerBudgetsTest, ProcessorTimeOfACallCountsFromItsBegin) {
  add_call(ipc::FrameType::refresh, milliseconds(5'000));
  EXPECT_EQ(message_of({0, milliseconds(6'000), 1}), "");
  EXPECT_EQ(message_of({0, milliseconds(6'500), 1}), "cpu: CPU 1.5 s over the budget of 1 s in refresh");
}

TEST_F(WorkerBudgetsTest, AWatchMayUseMoreProcessorTimeThanACall) {
  add_call(ipc::FrameType::watch, milliseconds(0));
  EXPECT_EQ(message_of({0, milliseconds(50'000), 1}), "");
}

TEST_F(WorkerBudgetsTest, ProcessorTimeBetweenCallsCountsFromTheLastCall) {
  EXPECT_EQ(message_of({0, milliseconds(3'000), 1}), "");
  EXPECT_EQ(message_of({0, milliseconds(4'250), 1}), "cpu: CPU 1.3 s over the budget of 1 s while no call ran");
  budgets_.note_start();
  EXPECT_EQ(message_of({0, milliseconds(4'250), 1}), "");
}

TEST_F(WorkerBudgetsTest, AnOverdueRefreshThatHadTheWholeBudgetExceedsIt) {
  const auto whole = Steady::now() + milliseconds(60'000);
  const Call refresh(context_.get_executor(), 1, ipc::FrameType::refresh, whole);
  const auto exceeded = budgets_.check_overdue(refresh);
  ASSERT_TRUE(exceeded);
  EXPECT_EQ(exceeded->budget, "call");
  EXPECT_EQ(exceeded->message, "no answer within the budget of 60 s in refresh");
  EXPECT_FALSE(budgets_.check_overdue(Call(context_.get_executor(), 2, ipc::FrameType::health, whole)));
  const auto shorter = Steady::now() + milliseconds(5'000);
  EXPECT_FALSE(budgets_.check_overdue(Call(context_.get_executor(), 3, ipc::FrameType::read, shorter)));
}

}  // namespace
}  // namespace driftd::host
