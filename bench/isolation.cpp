// SPDX-License-Identifier: Apache-2.0
// What isolation costs: from the refresh call to the last of 100,000 unchanged records of 500 bytes settled by its
// digest, by a worker process and by threads of this one. Both redact, digest and check alike and run in turns, so that
// both meet the same neighbours. Exit 1: the median of the worker is above 1.6 times that of the threads.
#include <sys/resource.h>
#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <vector>

#include "engine/index.hpp"
#include "host/host.hpp"

namespace driftd::bench {
namespace {

constexpr std::size_t kThings = 100'000;
constexpr int kRounds = 7;
constexpr double kMost = 1.6;
using Isolation = core::SessionSpec::Isolation;

struct Round {
  double wall_ms = 0, cpu_ms = 0;  ///< cpu: of this process and of workers that ended
};

double cpu_ms() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  const auto ms = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) * 1e3 + static_cast<double>(t.tv_usec) / 1e3;
  };
  return ms(used.ru_utime) + ms(used.ru_stime);
}

/// A session and what the engine remembers of its resources.
class Side {
 public:
  Side(core::SessionFactory& factory, asio::io_context& core, const std::string& plugin, Isolation isolation)
      : core_(core) {
    core::SessionSpec spec;
    spec.backend = "bench";
    spec.provider = plugin;
    spec.settings_json = "{}";
    spec.isolation = isolation;
    spec.worker_key = {"0a0b0c0d", {1, 2, 3}};
    spec.digest_seed = 20261121;
    auto opened = factory.open(spec);
    if (!opened) throw std::runtime_error(opened.error().message);
    session_ = *opened;
  }
  ~Side() { run(session_->stop()); }
  Side(const Side&) = delete;
  Side& operator=(const Side&) = delete;

  /// One refresh; throws unless every record came and, but in the first, was settled.
  Round refresh(bool first) {
    settled_ = fresh_ = 0;
    const double cpu = cpu_ms();
    const auto begun = std::chrono::steady_clock::now();
    const Status status = run(all());
    const std::chrono::duration<double, std::milli> wall = std::chrono::steady_clock::now() - begun;
    if (!status) throw std::runtime_error(status.error().message);
    if ((first ? fresh_ : settled_) != kThings)
      throw std::runtime_error(std::to_string(settled_) + " records settled, " + std::to_string(fresh_) + " not");
    return {wall.count(), cpu_ms() - cpu};
  }

 private:
  Task<Status> all() {
    const core::PageHandler handler = [this](core::RecordPage page) { return settle(std::move(page)); };
    const core::RefreshRequest request{true, {}, {}, {}};
    const auto outcome = co_await session_->refresh(request, handler);
    if (!outcome) co_return fail(outcome.error());
    co_return Status{};
  }
  /// As the engine does it: by identity, then by digest.
  Task<Status> settle(core::RecordPage page) {
    for (const auto& record : page.records) {
      const auto* known = index_.find(record.id);
      if (known != nullptr && known->digest == record.digest) {
        ++settled_;
        continue;
      }
      ++fresh_;
      engine::Index::Entry entry;
      entry.digest = record.digest;
      index_.put(record.id, entry);
    }
    co_return Status{};
  }
  template <class T>
  T run(Task<T> task) {
    std::optional<T> out;
    asio::co_spawn(core_, std::move(task), [&out](std::exception_ptr, T value) { out.emplace(std::move(value)); });
    core_.restart();
    while (!out) core_.run_one();
    return std::move(*out);
  }
  void run(Task<void> task) {
    bool done = false;
    asio::co_spawn(core_, std::move(task), [&done](std::exception_ptr) { done = true; });
    core_.restart();
    while (!done) core_.run_one();
  }

  asio::io_context& core_;
  std::shared_ptr<core::Session> session_;
  engine::Index index_;
  std::size_t settled_ = 0, fresh_ = 0;
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

double print(const char* name, const std::vector<Round>& rounds) {
  std::vector<double> walls;
  std::vector<double> cpus;
  for (const auto& round : rounds) {
    walls.push_back(round.wall_ms);
    cpus.push_back(round.cpu_ms);
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
  Side worker(*factory, core, plugin, Isolation::process);
  Side threads(*factory, core, plugin, Isolation::in_process);
  worker.refresh(true);
  threads.refresh(true);
  std::vector<Round> of_worker;
  std::vector<Round> of_threads;
  for (int i = 0; i < kRounds; ++i) {
    of_worker.push_back(worker.refresh(false));
    of_threads.push_back(threads.refresh(false));
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
