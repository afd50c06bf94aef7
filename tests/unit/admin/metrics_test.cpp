// SPDX-License-Identifier: Apache-2.0
// The metrics that are read from a view of the agent.
#include "admin/metrics.hpp"

#include <gmock/gmock.h>

namespace driftd::admin::test {
namespace {

using testing::HasSubstr;
using testing::Not;

core::BackendView backend(const std::string& name, const std::string& jail) {
  core::BackendView out;
  out.name = name;
  out.worker.jail = jail;
  return out;
}

TEST(Metrics, TheJailIsThatOfTheWorkersThatRunNow) {
  PrometheusMetrics metrics("driftd");
  core::AgentView view;
  view.backends = {backend("cache", "landlock, seccomp"), backend("bus", "no landlock, seccomp")};
  EXPECT_THAT(metrics.render(view, {}), HasSubstr("\ndriftd_agent_jail 0\n"));
  view.backends = {backend("cache", "landlock, seccomp")};
  EXPECT_THAT(metrics.render(view, {}), HasSubstr("\ndriftd_agent_jail 1\n"));
  view.backends = {backend("cache", "")};
  EXPECT_THAT(metrics.render(view, {}), Not(HasSubstr("agent_jail"))) << "no worker runs, so nothing is known of it";
}

TEST(Metrics, EndedOperationsAreACounterByResult) {
  PrometheusMetrics metrics("driftd");
  core::AgentView view;
  core::EnforcementView::Backend cache;
  cache.name = "cache";
  cache.ended = {{"done", 4}, {"refused", 1}};
  view.enforcement.backends = {cache};
  for (int scrape = 0; scrape < 2; ++scrape) {
    const std::string text = metrics.render(view, {});
    EXPECT_THAT(text, HasSubstr("# TYPE driftd_enforce_operations_total counter"));
    EXPECT_THAT(text, HasSubstr("\ndriftd_enforce_operations_total{backend=\"cache\",result=\"done\"} 4\n"));
  }
  view.enforcement.backends.clear();
  EXPECT_THAT(metrics.render(view, {}), Not(HasSubstr("enforce_operations_total{")));
}

TEST(Metrics, EachReasonOfADropIsASeriesOfItsOwn) {
  PrometheusMetrics metrics("driftd");
  const std::string text = metrics.render({}, {{"ops", 10, 6, 0, 1, 3, {{"dead_letter", 1}, {"retention", 2}}}});
  EXPECT_THAT(text, HasSubstr("\ndriftd_sink_dropped_events{reason=\"dead_letter\",sink=\"ops\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("\ndriftd_sink_dropped_events{reason=\"retention\",sink=\"ops\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("\ndriftd_sink_events{sink=\"ops\",state=\"dropped\"} 3\n"));
  EXPECT_THAT(metrics.render({}, {{"ops", 0, 0, 0, 0, 0}}), Not(HasSubstr("sink_dropped_events{")));
}

TEST(Metrics, TheChangeLogShowsWhatWaitsAndSinceWhen) {
  PrometheusMetrics metrics("driftd");
  core::AgentView view;
  EXPECT_THAT(metrics.render(view, {}), Not(HasSubstr("change_log_entries{"))) << "it is off";
  view.change_log.on = true;
  view.change_log.waiting = 3;
  view.change_log.sent = 5;
  view.change_log.dropped = 7;
  view.change_log.failures = 2;
  view.change_log.oldest_ns = 1'500'000'000;
  const std::string text = metrics.render(view, {});
  EXPECT_THAT(text, HasSubstr("\ndriftd_change_log_entries{state=\"waiting\"} 3\n"));
  EXPECT_THAT(text, HasSubstr("\ndriftd_change_log_entries{state=\"sent\"} 5\n"));
  EXPECT_THAT(text, HasSubstr("\ndriftd_change_log_entries{state=\"dropped\"} 7\n"));
  EXPECT_THAT(text, HasSubstr("\ndriftd_change_log_failures 2\n"));
  EXPECT_THAT(text, HasSubstr("\ndriftd_change_log_oldest_timestamp_seconds 1.5\n"));
}

}  // namespace
}  // namespace driftd::admin::test
