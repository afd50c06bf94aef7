// SPDX-License-Identifier: Apache-2.0
// A sink that is down for a day while a million events are committed: real store, relay, JetStream sink and server; the
// wall clock that they see is moved on with each commit. Expected: the memory of the process does not grow with what
// waits, everything arrives when the server is back, and the totals add up exactly. Exit 1 if not.
#include <unistd.h>
#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <fstream>
#include <iostream>

#include "clock.hpp"
#include "integration/nats/bus.hpp"
#include "support/agent_run.hpp"

namespace driftd::bench {
namespace {

using Steady = std::chrono::steady_clock;

struct Options {
  int events = 1'000'000, hours = 24;
  double growth = 16;  ///< MiB that the process may grow between a tenth of the events and all of them
};

/// The machine's clock, with a wall clock that the test moves on. Any thread.
class MovedClock final : public Clock {
 public:
  Nanos wall() const override { return system_.wall() + ahead_; }
  std::chrono::steady_clock::time_point mono() const override { return system_.mono(); }
  void advance(Nanos by) { ahead_ += by; }

 private:
  SystemClock system_;
  std::atomic<Nanos> ahead_ = 0;
};

double resident_mib() {
  std::ifstream file("/proc/self/statm");
  long pages = 0, resident = 0;
  file >> pages >> resident;
  return static_cast<double>(resident) * static_cast<double>(::sysconf(_SC_PAGESIZE)) / (1 << 20);
}

/// Commits all events while the sink is down. Returns by how many MiB the process grew after the first tenth.
double outage(test::AgentRun& agent, MovedClock& clock, const Options& options) {
  constexpr int kSteps = 100;
  double after_a_tenth = 0;
  for (int step = 1; step <= kSteps; ++step) {
    agent.commit(options.events / kSteps);
    clock.advance(std::chrono::nanoseconds(std::chrono::hours(options.hours)).count() / kSteps);
    if (step == kSteps / 10) after_a_tenth = resident_mib();
  }
  return resident_mib() - after_a_tenth;
}

int measure(const Options& options) {
  const test::TempDir dir;
  test::NatsServer server;
  server.stop();
  MovedClock clock;
  sinks::NatsSettings settings;
  settings.servers = {server.url()};
  test::AgentRun agent(dir, test::nats_sink(test::without_views(settings)), clock);
  const auto begin = Steady::now();
  const double growth = outage(agent, clock, options);
  std::printf(
      "%d events committed in %.0f s, the wall clock went on by %d h; %.1f MiB resident, %.1f MiB more than after a "
      "tenth\n",
      options.events, seconds_since(begin), options.hours, resident_mib(), growth);
  const core::SinkTotals waiting = agent.totals();
  server.start();
  while (agent.view().delivered == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  const auto back = Steady::now();
  double most = 0;
  while (agent.totals().acked < options.events && seconds_since(back) < 600) {
    most = std::max(most, resident_mib());
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  const core::SinkTotals done = agent.totals();
  const double took = seconds_since(back);
  std::printf("drained in %.0f s: %.0f events/s, at most %.1f MiB resident\n", took, options.events / took, most);
  std::printf(
      "books: while it was down emitted %lld = pending %lld; afterwards emitted %lld = acked %lld, pending %lld, dead "
      "%lld, dropped %lld\n",
      static_cast<long long>(waiting.emitted), static_cast<long long>(waiting.pending),
      static_cast<long long>(done.emitted), static_cast<long long>(done.acked), static_cast<long long>(done.pending),
      static_cast<long long>(done.dead), static_cast<long long>(done.dropped));
  const bool exact = waiting.emitted == options.events && waiting.pending == options.events &&
                     done.emitted == options.events && done.acked == options.events && done.pending == 0 &&
                     done.dead == 0 && done.dropped == 0;
  return exact && growth <= options.growth ? 0 : 1;
}

}  // namespace
}  // namespace driftd::bench

int main(int argc, char** argv) {
  driftd::bench::Options options;
  CLI::App app("A sink that is down for a day, with a million events waiting");
  app.add_option("--events", options.events, "a multiple of 100");
  app.add_option("--hours", options.hours);
  app.add_option("--growth", options.growth, "exit 1 if the process grows by more MiB while events wait");
  CLI11_PARSE(app, argc, argv);
  try {
    return driftd::bench::measure(options);
  } catch (const std::exception& e) {
    std::cerr << "bench_outage: " << e.what() << '\n';
    return 2;
  }
}
