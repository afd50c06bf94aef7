// SPDX-License-Identifier: Apache-2.0
// How long the agent's start takes, from exec to its line "ready after …", when its store holds 1,000 events and when
// it holds a hundred or a thousand times as many: events of the past, each delivered to five sinks, with the drifts
// that ended. Each start follows a SIGKILL. Judged is the median of the largest store beside that of the smallest. Exit
// 1: above --most.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <thread>

#include "clock.hpp"
#include "support/agent.hpp"
#include "unit/store/bench.hpp"

namespace driftd::bench {
namespace {

using Steady = std::chrono::steady_clock;

constexpr int kSinks = 5, kAtOnce = 500;

struct Options {
  std::vector<int> events = {1'000, 100'000};
  int kills = 9, waiting = 0;
  double most = 1.5;
  bool log = false, whole = false;
};

std::vector<std::string> sink_names() {
  std::vector<std::string> out;
  for (int i = 0; i < kSinks; ++i) out.push_back("s" + std::to_string(i));
  return out;
}

std::string body(const test::TempDir& dir, const std::string& state) {
  std::string out =
      "defaults:\n  interval: 100ms\nlog: { level: debug }\nbackends:\n  - name: platform\n    provider: " +
      std::string("terraform\n    settings: { path: ") + state + " }\nsinks:\n";
  for (const auto& name : sink_names()) {
    out += "  ";
    out += name + ": { type: file, path: " + dir.file(name + ".jsonl") + " }\n";
  }
  return out;
}

core::Drift ended_drift(int number, const core::BackendRow& row, const core::ResourceId& resource) {
  core::Drift drift;
  drift.id = "d-" + std::to_string(number);
  drift.backend_uid = row.uid;
  drift.resource = resource;
  drift.status = core::DriftStatus::superseded;
  drift.changes = {{"partitions", core::ChangeClass::config, "3", "4", false}};
  drift.digest = core::digest_of(drift.changes, drift.against);
  return drift;
}

/// Adds the past to the store of an agent that is stopped.
void fill(const std::string& data_dir, int events, int waiting) {
  test::Bench bench(data_dir);
  bench.clock.now = SystemClock().wall();
  if (const Status opened = bench.open(); !opened) throw std::runtime_error(opened.error().message);
  const core::BackendRow row = bench.get(bench->backends()).front();
  const core::ResourceId resource = bench.get(bench->index(row.uid)).front().id;
  std::int64_t last = 0, read = 0;
  for (int done = 0; done < events;) {
    core::PageCommit page;
    page.backend_uid = row.uid;
    core::ResourceWrite write{bench.get(bench->load(row.uid, {resource})).front(), {}};
    for (int i = 0; i < kAtOnce && done < events; ++i, ++done) {
      auto draft = test::event_draft("r" + std::to_string(done % 3'000), sink_names(), row);
      std::get<core::BackendEvent>(draft.event).cause = std::string(400, 'c');
      page.events.push_back(std::move(draft));
      write.ended.push_back(ended_drift(done, row, resource));
    }
    page.writes.push_back(std::move(write));
    for (const auto& event : bench.get(bench->commit(page)).events) last = event.stamp.seq;
    if (done <= events - waiting) read = last;
  }
  for (const auto& name : sink_names()) bench.get(bench->settle({name, read, {}, {}, {}, {}}));
  bench.close();
}

double start(test::Agent& agent) {
  const auto former = agent.log().size();  // the log of the starts before
  const auto begin = Steady::now();
  agent.start();
  while (agent.log().find("ready after ", former) == std::string::npos) {
    if (!agent.running() || seconds_since(begin) > 120) throw std::runtime_error("not ready:\n" + agent.log());
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return seconds_since(begin);
}

void print_lines(const std::string& log) {
  for (const char* word : {"ready after ", "opened in "}) {
    const auto found = log.rfind(word);
    if (found != std::string::npos) std::printf("  %s\n", log.substr(found, log.find('\n', found) - found).c_str());
  }
}

double median_start(const Options& options, int events) {
  const test::TempDir dir, states;
  const std::string state = states.write(
      "terraform.tfstate",
      R"({"version":4,"terraform_version":"1.9.0","serial":7,"lineage":"abc","outputs":{},"resources":[{"mode":"managed",)"
      R"("type":"kafka_topic","name":"orders","provider":"p","instances":[{"attributes":{"partitions":3}}]}]})");
  test::Agent agent(dir, body(dir, state));
  start(agent);
  if (!test::eventually([&] { return agent.established({"platform"}); })) throw std::runtime_error("no baseline");
  agent.stop();
  fill(agent.data_dir(), events, std::min(options.waiting, events));
  start(agent);
  std::vector<double> starts;
  for (int i = 0; i < options.kills; ++i) {
    agent.kill();
    if (options.whole) std::ofstream(agent.data_dir() + "/store.suspect").flush();
    starts.push_back(start(agent));
  }
  std::sort(starts.begin(), starts.end());
  const auto bytes = std::filesystem::file_size(agent.data_dir() + "/store.db");
  std::printf("%8d events, %7.1f MiB: ready after p50 %.3f s, maximum %.3f s of %zu\n", events,
              static_cast<double>(bytes) / (1 << 20), starts[starts.size() / 2], starts.back(), starts.size());
  if (options.log) print_lines(agent.log());
  std::fflush(stdout);
  agent.kill();
  return starts[starts.size() / 2];
}

int measure(const Options& options) {
  std::vector<double> medians;
  for (const int events : options.events) medians.push_back(median_start(options, events));
  const double ratio = medians.back() / medians.front();
  std::printf("ratio of the largest to the smallest: %.2f (at most %.2f)\n", ratio, options.most);
  return ratio <= options.most ? 0 : 1;
}

}  // namespace
}  // namespace driftd::bench

int main(int argc, char** argv) {
  driftd::bench::Options options;
  CLI::App app("How long the agent's start takes after a SIGKILL, by the number of events in its store");
  app.add_option("--events", options.events, "one store for each number, the smallest first");
  app.add_option("--kills", options.kills);
  app.add_option("--waiting", options.waiting, "the newest ones, which no sink has yet");
  app.add_option("--most", options.most, "exit 1 when the ratio is above it");
  app.add_flag("--whole", options.whole, "make each start check the whole store, as after damage was found");
  app.add_flag("--log", options.log, "print the agent's own times");
  CLI11_PARSE(app, argc, argv);
  try {
    return driftd::bench::measure(options);
  } catch (const std::exception& e) {
    std::cerr << "bench_restart: " << e.what() << '\n';
    return 2;
  }
}
