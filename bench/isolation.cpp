// SPDX-License-Identifier: Apache-2.0
// What isolation costs: from the refresh call to the last of 100,000 unchanged records of 500 bytes settled by its
// digest, by a worker process and by threads of this one. Both redact, digest and check alike and run in turns, so that
// both meet the same neighbours. Exit 1: the median of the worker is above 1.6 times that of the threads.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <vector>

#include "bench/side.hpp"

namespace driftd::bench {
namespace {

constexpr std::size_t kThings = 100'000;
constexpr int kRounds = 7;
constexpr double kMost = 1.6;
using Isolation = core::SessionSpec::Isolation;

/// One refresh. Throws unless every record came and, but in the first, was settled.
Round refresh(Side& side, bool first) {
  const Round out = side.refresh();
  if ((first ? out.fresh : out.settled) != kThings)
    throw std::runtime_error(std::to_string(out.settled) + " records settled, " + std::to_string(out.fresh) + " not");
  return out;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

double print(const char* name, const std::vector<Round>& rounds) {
  std::vector<double> walls;
  std::vector<double> cpus;
  for (const auto& round : rounds) {
    walls.push_back(round.wall * 1e3);
    cpus.push_back(round.agent * 1e3);
  }
  std::printf("%-10s  min %6.0f ms  median %6.0f ms  CPU of the agent %6.0f ms\n", name,
              *std::min_element(walls.begin(), walls.end()), median(walls), median(cpus));
  return median(walls);
}

int measure(const std::filesystem::path& build, const std::string& plugin) {
  asio::io_context core;
  host::HostOptions options;
  options.core = core.get_executor();
  options.worker = build / "bin/driftd-provider-host";
  const auto factory = host::make_session_factory(options);
  Side worker(*factory, core, plugin, "{}", Isolation::process);
  Side threads(*factory, core, plugin, "{}", Isolation::in_process);
  refresh(worker, true);
  refresh(threads, true);
  std::vector<Round> of_worker;
  std::vector<Round> of_threads;
  for (int i = 0; i < kRounds; ++i) {
    of_worker.push_back(refresh(worker, false));
    of_threads.push_back(refresh(threads, false));
  }
  std::printf("%zu unchanged records of 500 bytes, %d rounds each, in turns\n", kThings, kRounds);
  const double isolated = print("worker", of_worker);
  const double inside = print("in-process", of_threads);
  std::printf("worker / in-process: %.2f (at most %.1f)\n", isolated / inside, kMost);
  return isolated <= kMost * inside ? 0 : 1;
}

}  // namespace
}  // namespace driftd::bench

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "bench_isolation BUILD_FOLDER PLUGIN\n";
    return 2;
  }
  try {
    return driftd::bench::measure(argv[1], argv[2]);
  } catch (const std::exception& e) {
    std::cerr << e.what() << "\n";
    return 1;
  }
}
