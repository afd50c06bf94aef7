// SPDX-License-Identifier: Apache-2.0
#include "attacked.hpp"

#include <cstdlib>
#include <fstream>
#include <sstream>

namespace driftd::test {
namespace {

using std::chrono::seconds;

constexpr long kMib = 1024;  // KiB
/// Above idle. A sanitizer keeps shadow of what is used, and red zones around it.
#if defined(__SANITIZE_THREAD__)
constexpr long kMayGrow = 64 * kMib * 8;
#elif defined(__SANITIZE_ADDRESS__)
constexpr long kMayGrow = 64 * kMib * 2;
#else
constexpr long kMayGrow = 64 * kMib;
#endif

long kib_of(pid_t pid, const std::string& name) {
  std::ifstream status("/proc/" + std::to_string(pid) + "/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(name)) return std::stol(line.substr(name.size()));
  }
  return 0;
}

/// What a failure shows of a log that may be long.
std::string end_of(const std::string& log) {
  constexpr std::size_t kShown = 20'000;
  return log.size() <= kShown ? log : "…" + log.substr(log.size() - kShown);
}

/// AddressSanitizer keeps 256 MiB of what was given back, of each size beside the others: nothing of the agent's own
/// could be told from that.
void keep_little(std::map<std::string, std::string>& environment) {
#if defined(__SANITIZE_ADDRESS__)
  const char* given = std::getenv("ASAN_OPTIONS");
  environment["ASAN_OPTIONS"] = (given == nullptr ? "" : std::string(given) + ":") + "quarantine_size_mb=8";
#else
  (void)environment;
#endif
}

}  // namespace

Attacked::Attacked() { redis_.grant_readme("redis-canary"); }
Attacked::~Attacked() = default;

/// Told to end, not killed: what it holds until then it gives back, or a sanitizer says so.
void Attacked::TearDown() {
  if (agent_ && agent_->running()) {
    EXPECT_EQ(agent_->stop(), 0) << agent_->log();
  }
}

long Attacked::rss() const { return kib_of(agent_->pid(), "VmRSS:"); }
long Attacked::peak() const { return kib_of(agent_->pid(), "VmHWM:"); }

void Attacked::begin(const std::string& victim, const std::vector<std::string>& names,
                     std::map<std::string, std::string> secrets) {
  secrets.emplace("REDIS_PASSWORD", "redis-canary");
  keep_little(secrets);
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
  std::ofstream("/proc/" + std::to_string(agent_->pid()) + "/clear_refs") << "5";  // the peak begins anew
  idle_ = rss();
  pid_ = agent_->pid();
}

std::vector<nlohmann::json> Attacked::drifts(const std::string& backend, const std::string& id) const {
  return agent_->rows({"drifts", "--all", "--whole", "--backend", backend, "--id", id});
}

testing::AssertionResult Attacked::told(const std::string& backend, const std::string& mark, const std::string& id,
                                        std::chrono::milliseconds most) const {
  const auto there = [&] {
    const auto found = drifts(backend, id);
    return std::any_of(found.begin(), found.end(),
                       [&](const auto& drift) { return drift.dump().find(mark) != std::string::npos; });
  };
  if (eventually(there, most)) return testing::AssertionSuccess();
  return testing::AssertionFailure() << backend << ": not told: " << mark << "\n"
                                     << end_of(agent_->log()) << agent_->cli({"backends"}).out;
}

testing::AssertionResult Attacked::named(const std::string& backend, const std::string& reason) const {
  if (eventually([&] { return agent_->backend(backend)->dump().find(reason) != std::string::npos; }, seconds(30))) {
    return testing::AssertionSuccess();
  }
  return testing::AssertionFailure() << "not named: " << reason << "\n"
                                     << agent_->backend(backend)->dump(2) << end_of(agent_->log());
}

void Attacked::expect_nothing_deleted(const std::string& backend, const std::string& id) const {
  for (const auto& drift : drifts(backend, id)) EXPECT_NE(drift.at("operation"), "deleted") << drift.dump();
}

testing::AssertionResult Attacked::neighbour_is_watched() {
  const std::string value = std::to_string(1'000'000 + ++changes_);
  redis_.command({"CONFIG", "SET", "maxmemory", value});
  return told("cache", value, "server", seconds(15));
}

void Attacked::expect_unharmed() {
  ASSERT_TRUE(agent_->running()) << agent_->log();
  EXPECT_EQ(agent_->pid(), pid_);
  EXPECT_TRUE(neighbour_is_watched());
  EXPECT_EQ(agent_->backend("cache")->at("failures"), 0) << agent_->backend("cache")->dump();
  EXPECT_EQ(agent_->cli({"status", "--probe", "live"}).code, 0);
  EXPECT_LE(peak() - idle_, kMayGrow) << "KiB above idle, which was " << idle_;
}

std::string Attacked::everything() const {
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
      const Output said = agent_->cli(line);
      out += said.out + said.err;
    }
  }
  out += run({"curl", "-s", "http://127.0.0.1:" + std::to_string(agent_->admin_port()) + "/metrics"}).out;
  out += read_file(events_);
  for (const auto& file : std::filesystem::directory_iterator(agent_->data_dir())) out += read_file(file.path());
  return out;
}

}  // namespace driftd::test
