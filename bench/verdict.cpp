// SPDX-License-Identifier: Apache-2.0
// What the verdict costs, for records of about 1 KB: read for the first time, unchanged (from the plugin's emit to
// settled by its digest), and changed (from the record to the commit of its drift and event). Beside them the floors:
// XXH3 and simdjson over the same bodies. `--count 1000000` measures a million. Exit 1: a figure is above its bound,
// which is a ratio to a floor where time is concerned, because neighbours slow both.
#include <malloc.h>
#include <simdjson.h>
#include <sys/resource.h>
#include <unistd.h>
#include <xxhash.h>
#include <CLI/CLI.hpp>
#include <atomic>
#include <boost/asio/co_spawn.hpp>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <new>
#include <sstream>

#include "engine/index.hpp"
#include "host/host.hpp"
#include "support/line/engine_line.hpp"

namespace {
std::atomic<std::uint64_t> allocations{0};
}  // namespace

void* operator new(std::size_t size) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  if (void* out = std::malloc(size)) return out;
  throw std::bad_alloc();
}
void operator delete(void* at) noexcept { std::free(at); }
void operator delete(void* at, std::size_t) noexcept { std::free(at); }

namespace driftd::bench {
namespace {

using Isolation = core::SessionSpec::Isolation;
using Clock = std::chrono::steady_clock;

constexpr double kMostUnchanged = 12;  ///< CPU of an unchanged record, as a multiple of simdjson's parse of its body
constexpr double kMostChanged = 800;   ///< CPU of a changed record, likewise
constexpr double kMostAllocations = 2.5;
constexpr double kMostIndexBytes = 64;

double seconds_since(Clock::time_point begun) { return std::chrono::duration<double>(Clock::now() - begun).count(); }

double own_cpu() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6;
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

/// Processor time of a process; 0 if it is gone.
double cpu_of(int pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string line;
  std::getline(file, line);
  std::istringstream fields(line.substr(std::min(line.size(), line.rfind(')') + 2)));
  std::string skipped;
  for (int i = 0; i < 11; ++i) fields >> skipped;
  double user = 0, system = 0;
  fields >> user >> system;
  return (user + system) / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

struct Round {
  double wall = 0, agent = 0, worker = 0;  ///< seconds; agent, worker: of CPU
  std::uint64_t allocations = 0;
};

/// A session and what the engine remembers of its resources.
class Side {
 public:
  Side(core::SessionFactory& factory, asio::io_context& core, const std::string& plugin, std::size_t count,
       Isolation isolation)
      : core_(core),
        count_(count) {
    core::SessionSpec spec;
    spec.backend = "bench";
    spec.provider = plugin;
    spec.settings_json = R"({"count":)" + std::to_string(count) + "}";
    spec.isolation = isolation;
    spec.worker_key = {"0a0b0c0d", {1, 2, 3}};
    spec.digest_seed = 20261125;
    spec.budgets.records = 2'000'000;
    spec.budgets.bytes = 8ull << 30;
    spec.budgets.call = std::chrono::minutes(5);
    auto opened = factory.open(spec);
    if (!opened) throw std::runtime_error(opened.error().message);
    session_ = *opened;
  }
  ~Side() {
    bool done = false;
    asio::co_spawn(core_, session_->stop(), [&done](std::exception_ptr) { done = true; });
    core_.restart();
    while (!done) core_.run_one();
  }
  Side(const Side&) = delete;
  Side& operator=(const Side&) = delete;

  /// One refresh. Throws unless every record came and, if `digests`, all but the first as its digest.
  Round refresh(bool digests) {
    settled_ = fresh_ = short_ = bytes_ = 0;
    const int begun_by = session_->status().pid;
    const double agent = own_cpu();
    const double worker = begun_by > 0 ? cpu_of(begun_by) : 0;
    const std::uint64_t before = allocations;
    const auto begun = Clock::now();
    std::optional<Status> status;
    asio::co_spawn(core_, all(digests),
                   [&status](std::exception_ptr, Status value) { status.emplace(std::move(value)); });
    core_.restart();
    while (!status) core_.run_one();
    if (!*status) throw std::runtime_error(status->error().message);
    if (settled_ + fresh_ != count_ || (digests && short_ + 1 != count_))
      throw std::runtime_error(std::to_string(settled_ + fresh_) + " records, " + std::to_string(short_) + " digests");
    const int pid = session_->status().pid;  // it started for the first refresh
    return {seconds_since(begun), own_cpu() - agent, pid > 0 ? cpu_of(pid) - worker : 0, allocations - before};
  }
  std::uint64_t bytes() const { return bytes_; }  ///< of the bodies of the last refresh
  const std::vector<std::string>& sample() const { return sample_; }

 private:
  Task<Status> all(bool digests) {
    const core::PageHandler handler = [this](core::RecordPage page) { return settle(std::move(page)); };
    core::RefreshRequest request;
    request.full = true;
    request.digests = digests;
    const auto outcome = co_await session_->refresh(std::move(request), handler);
    if (!outcome) co_return fail(outcome.error());
    co_return Status{};
  }
  /// As the engine does it: by identity, then by digest.
  Task<Status> settle(core::RecordPage page) {
    for (const auto& record : page.records) {
      short_ += record.digest_only ? 1 : 0;
      bytes_ += record.body.size();
      if (sample_.size() < 1'000 && !record.digest_only) sample_.push_back(record.body);
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

  asio::io_context& core_;
  std::size_t count_, settled_ = 0, fresh_ = 0, short_ = 0;
  std::uint64_t bytes_ = 0;
  std::shared_ptr<core::Session> session_;
  engine::Index index_;
  std::vector<std::string> sample_;
};

/// Microseconds for each body of `sample`, over `rounds` of all of them.
template <class F>
double floor_us(const std::vector<std::string>& sample, F each) {
  constexpr int kRounds = 20;
  const auto begun = Clock::now();
  for (int round = 0; round < kRounds; ++round) {
    for (const auto& body : sample) each(body);
  }
  return seconds_since(begun) * 1e6 / (kRounds * static_cast<double>(sample.size()));
}

double print(const char* name, const Round& round, std::size_t count, std::uint64_t bytes) {
  const auto n = static_cast<double>(count);
  const double us = (round.agent + round.worker) * 1e6 / n;
  std::printf("%-32s %6.2f s  CPU agent %5.2f s, worker %5.2f s  %6.2f us a record  %6.0f MB/s of CPU\n", name,
              round.wall, round.agent, round.worker, us,
              static_cast<double>(bytes) / 1e6 / std::max(round.agent + round.worker, 1e-9));
  return us;
}

/// From the record to the commit of its drift and event, by the engine over the real store.
double changed_us(const std::vector<std::string>& sample) {
  constexpr int kThings = 10'000;
  const test::TempDir folder;
  test::EngineLine line(folder);
  const auto put = [&](const char* owner) {
    for (int i = 0; i < kThings; ++i) {
      std::string body = sample[static_cast<std::size_t>(i) % sample.size()];
      body.replace(body.find("orders"), 6, owner);
      line.world->resources[{"thing", "t" + std::to_string(i)}] = std::move(body);
    }
  };
  put("orders");
  line.start(false);
  line.refresh();
  line.refresh();
  put("others");
  const double before = own_cpu();
  const auto begun = Clock::now();
  const auto report = line.refresh();
  const double cpu = (own_cpu() - before) * 1e6 / kThings;
  if (report.transitions != kThings) throw std::runtime_error(std::to_string(report.transitions) + " drifts");
  std::printf("%-32s %6.2f s  %31s %6.2f us a record\n", "changed: record to commit", seconds_since(begun), "", cpu);
  return cpu;
}

/// Memory of the index for each resource, as the allocator gave it.
double index_bytes() {
  constexpr int kThings = 1'000'000;
  const auto in_use = [] { return static_cast<double>(::mallinfo2().uordblks + ::mallinfo2().hblkhd); };
  const double before = in_use();
  engine::Index index;
  for (int i = 0; i < kThings; ++i) index.put({"thing", std::to_string(i)}, {});
  return (in_use() - before) / kThings;
}

bool within(const char* what, double found, double most, const char* unit) {
  std::printf("%s: %.2f%s (at most %.1f)\n", what, found, unit, most);
  return found <= most;
}

int measure(const std::filesystem::path& build, const std::string& plugin, std::size_t count) {
  asio::io_context core;
  host::HostOptions options;
  options.core = core.get_executor();
  options.worker = build / "bin/driftd-provider-host";
  const auto factory = host::make_session_factory(options);
  Side worker(*factory, core, plugin, count, Isolation::process);
  const Round first = worker.refresh(false);
  const std::uint64_t bytes = worker.bytes();
  std::printf("%zu records of %.0f bytes\n", count, static_cast<double>(bytes) / static_cast<double>(count));
  const double hash = floor_us(worker.sample(), [](const std::string& body) {
    if (XXH3_64bits(body.data(), body.size()) == 0) throw std::runtime_error("a hash of zero");
  });
  simdjson::dom::parser parser;
  const double parse = floor_us(worker.sample(), [&](const std::string& body) {
    if (parser.parse(body).error()) throw std::runtime_error("a body is not JSON");
  });
  std::printf("%-32s %6.3f us a record\n%-32s %6.3f us a record (kernel: %s)\n", "floor: XXH3", hash,
              "floor: simdjson, parse", parse, simdjson::get_active_implementation()->name().c_str());
  print("first", first, count, bytes);
  print("unchanged, whole records", worker.refresh(false), count, bytes);
  const double unchanged = print("unchanged, digests", worker.refresh(true), count, bytes);
  Side threads(*factory, core, plugin, count, Isolation::in_process);
  threads.refresh(false);
  const auto made = threads.refresh(true).allocations;
  const double changed = changed_us(worker.sample());
  bool good = within("unchanged / simdjson", unchanged / parse, kMostUnchanged, "");
  good &= within("changed / simdjson", changed / parse, kMostChanged, "");
  good &= within("allocations of an unchanged record, plugin and SDK included",
                 static_cast<double>(made) / static_cast<double>(count), kMostAllocations, "");
  good &= within("index, a resource", index_bytes(), kMostIndexBytes, " bytes");
  return good ? 0 : 1;
}

}  // namespace
}  // namespace driftd::bench

int main(int argc, char** argv) {
  CLI::App app{"what the verdict costs"};
  std::string build, plugin;
  std::size_t count = 100'000;
  app.add_option("build", build, "the build folder")->required();
  app.add_option("plugin", plugin, "records.so")->required();
  app.add_option("--count", count, "records");
  CLI11_PARSE(app, argc, argv);
  try {
    return driftd::bench::measure(build, plugin, count);
  } catch (const std::exception& e) {
    std::cerr << e.what() << "\n";
    return 1;
  }
}
