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

#include "bench/side.hpp"
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
constexpr double kMostChanged = 550;   ///< CPU of a changed record, likewise
constexpr double kMostAllocations = 2.5;
constexpr double kMostIndexBytes = 64;
constexpr std::size_t kPageRecords = 512;  ///< records in a page of the host

/// Microseconds of CPU for each body of `sample`, over `rounds` of all of them.
template <class F>
double floor_us(const std::vector<std::string>& sample, F each) {
  constexpr int kRounds = 20;
  const double before = own_cpu();
  for (int round = 0; round < kRounds; ++round) {
    for (const auto& body : sample) each(body);
  }
  return (own_cpu() - before) * 1e6 / (kRounds * static_cast<double>(sample.size()));
}

double print(const char* name, const Round& round, std::size_t count, std::uint64_t bytes) {
  const auto n = static_cast<double>(count);
  const double us = (round.agent + round.worker) * 1e6 / n;
  std::printf("%-32s %6.2f s  CPU agent %5.2f s, worker %5.2f s  %6.2f us a record  %6.0f MB/s of CPU\n", name,
              round.wall, round.agent, round.worker, us,
              static_cast<double>(bytes) / 1e6 / std::max(round.agent + round.worker, 1e-9));
  return us;
}

/// From the record to the commit of its drift and event, by the engine over the real store. Records come in pages of
/// `page_records`.
double changed_us(const std::vector<std::string>& sample, std::size_t page_records) {
  constexpr int kThings = 10'000;
  const test::TempDir folder;
  test::EngineLine line(folder);
  line.world->page_records = page_records;
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

/// One refresh. Throws unless every record came and, if `digests`, all but the first as its digest.
Round refresh(Side& side, std::size_t count, bool digests) {
  const Round out = side.refresh(digests);
  if (out.settled + out.fresh != count || (digests && side.digests() + 1 != count))
    throw std::runtime_error(std::to_string(out.settled + out.fresh) + " records, " + std::to_string(side.digests()) +
                             " digests");
  return out;
}

bool within(const char* what, double found, double most, const char* unit) {
  std::printf("%s: %.2f%s (at most %.1f)\n", what, found, unit, most);
  return found <= most;
}

host::HostOptions host_options(const std::filesystem::path& build, asio::io_context& core) {
  host::HostOptions options;
  options.core = core.get_executor();
  options.worker = build / "bin/driftd-provider-host";
  return options;
}

/// Only changed records, to compare two builds.
int measure_changed(const std::filesystem::path& build, const std::string& plugin, std::size_t page_records) {
  asio::io_context core;
  const auto factory = host::make_session_factory(host_options(build, core));
  Side worker(*factory, core, plugin, R"({"count":1000})", Isolation::process);
  refresh(worker, 1'000, false);
  changed_us(worker.sample(), page_records);
  return 0;
}

int measure(const std::filesystem::path& build, const std::string& plugin, std::size_t count) {
  asio::io_context core;
  const auto factory = host::make_session_factory(host_options(build, core));
  const std::string settings = R"({"count":)" + std::to_string(count) + "}";
  Side worker(*factory, core, plugin, settings, Isolation::process);
  const Round first = refresh(worker, count, false);
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
  print("unchanged, whole records", refresh(worker, count, false), count, bytes);
  const double unchanged = print("unchanged, digests", refresh(worker, count, true), count, bytes);
  Side threads(*factory, core, plugin, settings, Isolation::in_process);
  refresh(threads, count, false);
  const std::uint64_t before = allocations;
  refresh(threads, count, true);
  const std::uint64_t made = allocations - before;
  const double changed = changed_us(worker.sample(), kPageRecords);
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
  std::size_t count = 100'000, changed = 0;
  app.add_option("build", build, "the build folder")->required();
  app.add_option("plugin", plugin, "records.so")->required();
  app.add_option("--count", count, "records");
  app.add_option("--changed", changed, "measure only changed records, with this many in a page");
  CLI11_PARSE(app, argc, argv);
  try {
    if (changed > 0) return driftd::bench::measure_changed(build, plugin, changed);
    return driftd::bench::measure(build, plugin, count);
  } catch (const std::exception& e) {
    std::cerr << e.what() << "\n";
    return 1;
  }
}
