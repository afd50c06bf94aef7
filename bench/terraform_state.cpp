// SPDX-License-Identifier: Apache-2.0
// What the terraform provider needs for a state: from the bytes of the file to the last record that it emits, beside
// the floor, XXH3 of the same bytes and simdjson's DOM of the same instances. Two states of 120 MB: instances of one
// long text, and instances of 30 small attributes. Each measurement is a process of its own, so that its peak of memory
// is that of one reading. Exit 1: the median of CPU time is above kMost times the floor's, or a peak is above 128 MiB.
#include <dlfcn.h>
#include <simdjson.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <vector>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "driftd/provider.h"
#include "support/large_states.hpp"
#include "support/process.hpp"

namespace driftd::bench {
namespace {

constexpr double kMost = 60;  ///< generous: it was 17 and 29, and 140 and 200 while every instance became a tree
constexpr long kMostMib = 128;
constexpr int kRounds = 3;

/// Of one reading of a state.
struct Round {
  double seconds = 0;  ///< CPU time
  long peak_mib = 0;   ///< of the whole process
  std::uint64_t records = 0;
};

double cpu_seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

driftd_str str(std::string_view text) { return {text.data(), text.size()}; }

std::uint64_t records = 0;  ///< emitted so far; the ABI's functions have no other place for it

/// A host that takes everything and does nothing.
const driftd_host_table& host() {
  static const driftd_host_table kTable = [] {
    driftd_host_table t{};
    t.size = sizeof t;
    t.now = []() -> std::int64_t { return 1; };
    t.log = [](driftd_call, std::int32_t, driftd_str, const driftd_kv*, std::uint32_t) {};
    t.metric = [](driftd_call, driftd_str, double) -> driftd_status { return DRIFTD_OK; };
    t.cancelled = [](driftd_call) -> std::int32_t { return 0; };
    t.deadline = [](driftd_call) -> std::int64_t { return INT64_MAX; };
    t.cancel_fd = [](driftd_call) -> std::int32_t { return -1; };
    t.emit = [](driftd_call, const driftd_record*, std::uint32_t count, std::uint32_t) -> driftd_status {
      records += count;
      return DRIFTD_OK;
    };
    t.mark = [](driftd_call, const driftd_mark*) -> driftd_status { return DRIFTD_OK; };
    t.diag = [](driftd_call, const driftd_diagnostic* d) {
      std::cerr << std::string_view(d->text.data, d->text.len) << '\n';
    };
    t.permit = [](driftd_call, driftd_str, std::uint32_t) -> driftd_status { return DRIFTD_OK; };
    t.secret = [](driftd_call, driftd_str, driftd_use_fn, void*) -> driftd_status { return DRIFTD_UNSUPPORTED; };
    t.query = [](driftd_str, std::uint32_t) -> const void* { return nullptr; };
    return t;
  }();
  return kTable;
}

/// One refresh of the plugin's library over the file, in this process.
Round refresh(const std::string& library, const std::string& file) {
  void* opened = ::dlopen(library.c_str(), RTLD_NOW);
  if (opened == nullptr) throw std::runtime_error(::dlerror());
  const auto entry = reinterpret_cast<decltype(&driftd_provider_v1)>(::dlsym(opened, "driftd_provider_v1"));
  const driftd_offer offer{sizeof offer, 0, DRIFTD_ABI_MINOR, 0, str("bench")};
  driftd_accept accepted{};
  accepted.size = sizeof accepted;
  if (entry == nullptr || entry(&host(), &offer, &accepted) != DRIFTD_OK) throw std::runtime_error("not accepted");
  const std::string settings = R"({"path":")" + file + R"("})";
  const driftd_open_args args{sizeof args, 0, str("bench"), str(settings)};
  driftd_instance instance = nullptr;
  if (accepted.table->open(1, &args, &instance) != DRIFTD_OK) throw std::runtime_error("not opened");
  driftd_refresh_args request{};
  request.size = sizeof request;
  request.flags = DRIFTD_REFRESH_FULL;
  driftd_refresh_result result{};
  result.size = sizeof result;
  const double begun = cpu_seconds();
  if (accepted.table->refresh(instance, 1, &request, &result) != DRIFTD_OK) throw std::runtime_error("not refreshed");
  const double seconds = cpu_seconds() - begun;
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  return {seconds, used.ru_maxrss / 1024, records};
}

/// The least that anybody could do: the hash of all bytes, and simdjson's tree of the attributes of each instance.
Round floor(const std::string& file, const std::vector<test::Slice>& attributes) {
  std::ifstream in(file);
  std::ostringstream copy;
  copy << in.rdbuf();
  const simdjson::padded_string text(copy.str());
  simdjson::dom::parser parser;
  Round out;
  const double begun = cpu_seconds();
  volatile const std::uint64_t hash = XXH3_128bits(text.data(), text.size()).low64;
  (void)hash;
  for (const auto& [offset, size] : attributes) {
    if (parser.parse(text.data() + offset, size, false).error()) throw std::runtime_error("the floor fell");
    ++out.records;
  }
  out.seconds = cpu_seconds() - begun;
  return out;
}

/// Runs `measure` in a child.
template <class F>
Round apart(F measure) {
  int ends[2];
  if (::pipe(ends) != 0) throw std::runtime_error("pipe");
  const pid_t child = ::fork();
  if (child == 0) {
    try {
      const Round out = measure();
      ::_exit(::write(ends[1], &out, sizeof out) == sizeof out ? 0 : 1);
    } catch (const std::exception& e) {
      std::cerr << e.what() << '\n';
      ::_exit(1);
    }
  }
  ::close(ends[1]);
  Round out;
  const bool whole = ::read(ends[0], &out, sizeof out) == sizeof out;
  ::close(ends[0]);
  ::waitpid(child, nullptr, 0);
  if (!whole) throw std::runtime_error("a measurement failed");
  return out;
}

/// Returns the round of the median time.
template <class F>
Round median(F measure) {
  std::vector<Round> rounds;
  for (int i = 0; i < kRounds; ++i) rounds.push_back(apart(measure));
  std::sort(rounds.begin(), rounds.end(), [](const Round& a, const Round& b) { return a.seconds < b.seconds; });
  return rounds[rounds.size() / 2];
}

void print(const std::string& name, const Round& round, double megabytes) {
  std::printf("  %-34s %7.3f s   %7.0f MB/s   peak %4ld MiB   %ju records\n", name.c_str(), round.seconds,
              megabytes / round.seconds, round.peak_mib, static_cast<std::uintmax_t>(round.records));
}

/// Returns true if the provider is within its bounds.
bool measure(const std::string& name, const std::string& file, const std::vector<test::Slice>& attributes,
             const std::vector<std::string>& libraries) {
  const double megabytes = static_cast<double>(std::filesystem::file_size(file)) / 1e6;
  std::printf("%s: %.0f MB\n", name.c_str(), megabytes);
  const Round least = median([&] { return floor(file, attributes); });
  print("XXH3 and simdjson, bare", least, megabytes);
  for (std::size_t i = 1; i < libraries.size(); ++i)
    print("before: " + libraries[i], median([&] { return refresh(libraries[i], file); }), megabytes);
  const Round ours = median([&] { return refresh(libraries[0], file); });
  print("terraform provider", ours, megabytes);
  const double ratio = ours.seconds / least.seconds;
  std::printf("  ratio %.1f (at most %.0f), peak at most %ld MiB\n", ratio, kMost, kMostMib);
  return ratio <= kMost && ours.peak_mib <= kMostMib && ours.records > attributes.size();
}

}  // namespace
}  // namespace driftd::bench

int main(int argc, char** argv) {
  std::vector<std::string> libraries;
  std::size_t mib = 120;
  CLI::App app("CPU time and memory of the terraform provider beside their floor");
  app.add_option("libraries", libraries, "the provider's .so, then others to be shown beside it")->required();
  app.add_option("--mib", mib, "size of each state");
  CLI11_PARSE(app, argc, argv);
  try {
    using namespace driftd;
    const test::TempDir dir;
    const std::string large = dir.file("large.tfstate"), many = dir.file("many.tfstate");
    const auto large_slices = test::write_large_state(large, mib << 20, 1, "first");
    const auto many_slices = test::write_many_attributes(many, mib << 20);
    const bool a = bench::measure("instances of one long text", large, large_slices, libraries);
    const bool b = bench::measure("instances of 30 small attributes", many, many_slices, libraries);
    return a && b ? 0 : 1;
  } catch (const std::exception& e) {
    std::cerr << "bench_terraform_state: " << e.what() << '\n';
    return 2;
  }
}
