// SPDX-License-Identifier: Apache-2.0
#include "attacked.hpp"

#include <cstdlib>
#include <fstream>
#include <sstream>

namespace driftd::test {
namespace {

using std::chrono::seconds;

constexpr long kKibPerMib = 1024;
/// The maximum growth of the agent above idle. A sanitizer needs more: shadow memory and red zones.
#if defined(__SANITIZE_THREAD__)
constexpr long kMaxGrowthKib = 64 * kKibPerMib * 8;
#elif defined(__SANITIZE_ADDRESS__)
constexpr long kMaxGrowthKib = 64 * kKibPerMib * 2;
#else
constexpr long kMaxGrowthKib = 64 * kKibPerMib;
#endif

/// Returns a line of /proc/<pid>/status that is in KiB.
long status_kib(pid_t pid, const std::string& name) {
  std::ifstream status("/proc/" + std::to_string(pid) + "/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(name)) return std::stol(line.substr(name.size()));
  }
  return 0;
}

/// Returns the end of a log that may be too long for the message of a failure.
std::string end_of(const std::string& log) {
  constexpr std::size_t kShown = 20'000;
  return log.size() <= kShown ? log : "…" + log.substr(log.size() - kShown);
}

/// Limits AddressSanitizer's quarantine. By default it keeps 256 MiB of freed memory, which would hide the growth of
/// the agent itself.
void limit_quarantine(std::map<std::string, std::string>& environment) {
#if defined(__SANITIZE_ADDRESS__)
  const char* before = std::getenv("ASAN_OPTIONS");
  environment["ASAN_OPTIONS"] = (before == nullptr ? "" : std::string(before) + ":") + "quarantine_size_mb=8";
#else
  (void)environment;
#endif
}

}  // namespace

Attacked::Attacked() { redis_.grant_readme("redis-canary"); }
Attacked::~Attacked() = default;

/// Ends the agent by SIGTERM, not SIGKILL: only an agent that ends by itself lets a sanitizer report its leaks.
void Attacked::TearDown() {
  if (agent_ && agent_->running()) {
    EXPECT_EQ(agent_->stop(), 0) << agent_->log();
  }
}

long Attacked::rss_kib() const { return status_kib(agent_->pid(), "VmRSS:"); }
long Attacked::peak_kib() const { return status_kib(agent_->pid(), "VmHWM:"); }

void Attacked::start_agent(const std::string& victim, const std::vector<std::string>& names,
                           std::map<std::string, std::string> secrets) {
  secrets.emplace("REDIS_PASSWORD", "redis-canary");
  limit_quarantine(secrets);
  const std::string neighbour =
      "  - name: cache\n    provider: redis\n    interval: 500ms\n    settings: { address: \"" + redis_.address() +
      "\", username: driftd, password: \"${env:REDIS_PASSWORD}\" }\n";
  agent_ = std::make_unique<Agent>(dir_,
                                   admin_ + "defaults: { interval: 1s }\nbackends:\n" + neighbour + victim +
                                       "sinks:\n  out: { type: file, path: " + events_ +
                                       " }\n  desk: { type: notifications }\n" + more_sinks_,
                                   std::move(secrets));
  agent_->start();
  std::vector<std::string> all = names;
  all.emplace_back("cache");
  ASSERT_TRUE(eventually([&] { return agent_->established(all); }, seconds(120)))
      << agent_->log() << agent_->cli({"backends"}).out;
  ASSERT_TRUE(neighbour_is_watched());
  std::ofstream("/proc/" + std::to_string(agent_->pid()) + "/clear_refs") << "5";  // resets VmHWM to VmRSS
  idle_kib_ = rss_kib();
  pid_ = agent_->pid();
}

std::vector<nlohmann::json> Attacked::drifts(const std::string& backend, const std::string& id) const {
  return agent_->rows({"drifts", "--all", "--whole", "--backend", backend, "--id", id});
}

testing::AssertionResult Attacked::drift_appears(const std::string& backend, const std::string& mark,
                                                 const std::string& id, std::chrono::milliseconds max_wait) const {
  const auto appeared = [&] {
    const auto found = drifts(backend, id);
    return std::any_of(found.begin(), found.end(),
                       [&](const auto& drift) { return drift.dump().find(mark) != std::string::npos; });
  };
  if (eventually(appeared, max_wait)) return testing::AssertionSuccess();
  return testing::AssertionFailure() << backend << ": no drift contains: " << mark << "\n"
                                     << end_of(agent_->log()) << agent_->cli({"backends"}).out;
}

testing::AssertionResult Attacked::backend_reports(const std::string& backend, const std::string& reason) const {
  if (eventually([&] { return agent_->backend(backend)->dump().find(reason) != std::string::npos; }, seconds(30))) {
    return testing::AssertionSuccess();
  }
  return testing::AssertionFailure() << backend << " does not report: " << reason << "\n"
                                     << agent_->backend(backend)->dump(2) << end_of(agent_->log());
}

void Attacked::expect_nothing_deleted(const std::string& backend, const std::string& id) const {
  for (const auto& drift : drifts(backend, id)) EXPECT_NE(drift.at("operation"), "deleted") << drift.dump();
}

testing::AssertionResult Attacked::neighbour_is_watched() {
  const std::string value = std::to_string(1'000'000 + ++changes_);
  redis_.command({"CONFIG", "SET", "maxmemory", value});
  return drift_appears("cache", value, "server", seconds(15));
}

void Attacked::expect_unharmed() {
  ASSERT_TRUE(agent_->running()) << agent_->log();
  EXPECT_EQ(agent_->pid(), pid_);
  EXPECT_TRUE(neighbour_is_watched());
  EXPECT_EQ(agent_->backend("cache")->at("failures"), 0) << agent_->backend("cache")->dump();
  EXPECT_EQ(agent_->cli({"status", "--probe", "live"}).code, 0);
  EXPECT_LE(peak_kib() - idle_kib_, kMaxGrowthKib) << "KiB above idle, which was " << idle_kib_;
}

std::string Attacked::all_output() const {
  std::string out = agent_->log();
  for (const auto& words : std::vector<std::vector<std::string>>{{"status"},
                                                                 {"backends"},
                                                                 {"drifts", "--all"},
                                                                 {"drifts", "--all", "--whole"},
                                                                 {"resources", "--bodies"},
                                                                 {"resources", "--bodies", "--whole"},
                                                                 {"events", "--limit", "1000"},
                                                                 {"plugin", "ls"},
                                                                 {"audit"}}) {
    for (const char* form : {"table", "json"}) {
      auto line = words;
      line.insert(line.end(), {"-o", form});
      const Output answer = agent_->cli(line);
      out += answer.out + answer.err;
    }
  }
  out += run({"curl", "-s", "http://127.0.0.1:" + std::to_string(agent_->admin_port()) + "/metrics"}).out;
  out += read_file(events_);
  for (const auto& file : std::filesystem::directory_iterator(agent_->data_dir())) out += read_file(file.path());
  return out;
}

}  // namespace driftd::test
