// SPDX-License-Identifier: Apache-2.0
// What our own part of a drift costs: from the moment a provider's record is due at the host to the ack of JetStream,
// at 100 changes a second, beside fdatasync + publish of the same bytes at the same rate, in as many messages as the
// sink sends of one event: its canonical one and two views. Both run in turns of 100, so that both meet the same disk
// and the same neighbours. Judged is the p99 of a turn, as the median of all turns: a disk that stands still for 200 ms
// hits single turns of one or the other, and says nothing of us. Above 3 times the floor's is too much; so is the p99
// of the whole run, where the floor's own shows that the disk was quiet. Exit 1: too much in three runs one after the
// other, for one stall within our turns alone looks like our own.
#include <unistd.h>
#include <CLI/CLI.hpp>
#include <algorithm>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <mutex>

#include "sinks/nats/nats_sink.hpp"
#include "support/floor.hpp"
#include "support/line/engine_line.hpp"
#include "support/nats.hpp"

namespace driftd::bench {
namespace {

using Clock = std::chrono::steady_clock;
using Millis = std::chrono::duration<double, std::milli>;

/// Acks by resource, with the bytes that were sent. [any thread]
class Acks {
 public:
  void add(const core::StoredEvent& event) {
    const std::lock_guard lock(mutex_);
    acked_[event.resource] = {Clock::now(), event.payload};
    more_.notify_all();
  }
  void wait_for(std::size_t count) {
    std::unique_lock lock(mutex_);
    if (!more_.wait_for(lock, std::chrono::seconds(60), [&] { return acked_.size() >= count; })) {
      throw std::runtime_error(std::to_string(acked_.size()) + " of " + std::to_string(count) +
                               " events were acknowledged");
    }
  }
  std::pair<Clock::time_point, std::string> of(const std::string& resource) const {
    const std::lock_guard lock(mutex_);
    return acked_.at(resource);
  }
  void clear() {
    const std::lock_guard lock(mutex_);
    acked_.clear();
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable more_;
  std::map<std::string, std::pair<Clock::time_point, std::string>> acked_;
};

/// Passes everything on and notes what was delivered, when.
class Noting final : public core::Sink {
 public:
  Noting(std::unique_ptr<core::Sink> inner, Acks& acks) : inner_(std::move(inner)), acks_(acks) {}
  core::RetryPolicy policy() const override { return inner_->policy(); }
  Task<Status> start() override { return inner_->start(); }
  Task<core::Attempt> send(core::StoredEvent event) override {
    core::StoredEvent copy = event;
    core::Attempt attempt = co_await inner_->send(std::move(event));
    if (attempt.outcome == core::Attempt::Outcome::delivered) acks_.add(copy);
    co_return attempt;
  }
  Task<Status> flush() override { return inner_->flush(); }
  Task<Result<std::optional<std::int64_t>>> check(std::map<std::string, std::string>& notes) override {
    return inner_->check(notes);
  }
  bool must_check() const override { return inner_->must_check(); }
  void attach(std::function<void()> wake) override { inner_->attach(std::move(wake)); }
  void note(std::map<std::string, std::string>& notes, std::int64_t settled_to) override {
    inner_->note(notes, settled_to);
  }
  Task<void> stop() override { return inner_->stop(); }
  std::string describe() const override { return inner_->describe(); }

 private:
  std::unique_ptr<core::Sink> inner_;
  Acks& acks_;
};

core::ResourceId thing(int number) { return {"thing", "t" + std::to_string(number)}; }

constexpr int kRuns = 3;
constexpr int kMessages = 3;  ///< of one event: the canonical subject and two views
constexpr double kQuiet = 8;  ///< the disk was quiet: the floor's p99 is at most so many times its p50

/// Milliseconds; `turn`: the median of the turns' own p99.
struct Percentiles {
  double p50 = 0, p99 = 0, most = 0, turn = 0;
};

double at(const std::vector<double>& sorted, double share) {
  return sorted[static_cast<std::size_t>(share * static_cast<double>(sorted.size() - 1))];
}

Percentiles percentiles(std::vector<double> ms, int turn) {
  std::vector<double> turns;
  for (auto from = ms.begin(); from != ms.end();) {
    const auto to = from + std::min<std::ptrdiff_t>(turn, ms.end() - from);
    std::vector<double> one(from, to);
    std::sort(one.begin(), one.end());
    turns.push_back(at(one, 0.99));
    from = to;
  }
  std::sort(ms.begin(), ms.end());
  std::sort(turns.begin(), turns.end());
  return {at(ms, 0.5), at(ms, 0.99), ms.back(), at(turns, 0.5)};
}

void print(const char* name, const Percentiles& p) {
  std::printf("%-28s p50 %7.2f ms   p99 %7.2f ms   max %7.2f ms   p99 of a turn %7.2f ms\n", name, p.p50, p.p99, p.most,
              p.turn);
}

struct Options {
  int changes = 3000, turn = 100, rate = 100;
  double most = 3.0;
};

class Run {
 public:
  explicit Run(const Options& options)
      : options_(options),
        line_(dir_),
        floor_(dir_.path().string(), nats_.url(), kMessages) {
    for (int i = 0; i < options.changes; ++i) line_.world->resources[thing(i)] = R"({"retention":"7d","partitions":3})";
    line_.world->watches = true;
    sinks::NatsSettings settings;
    settings.servers = {nats_.url()};
    auto sink = sinks::open_nats("bus", settings, line_.core(), line_.io());
    if (!sink) throw std::runtime_error(sink.error().message);
    line_.add_sink("bus", std::make_unique<Noting>(std::move(*sink), acks_));
    line_.start(true);
    if (!test::eventually([&] { return line_.view().last_complete_ns > 0; })) throw std::runtime_error("no baseline");
    acks_.wait_for(1);  // the backend's registration: the stream is there
    acks_.clear();
  }

  void turns() {
    for (int from = 0; from < options_.changes; from += options_.turn) {
      const int to = std::min(options_.changes, from + options_.turn);
      ours(from, to);
      bare(from, to);
    }
  }
  Percentiles ours() const { return percentiles(ours_, options_.turn); }
  Percentiles floor() const { return percentiles(bare_, options_.turn); }

 private:
  /// The moment at which change `number` of a turn is due: latency counts from there, a queue before it is no excuse.
  Clock::time_point due(Clock::time_point start, int number) const {
    return start + std::chrono::microseconds(1'000'000LL * number / options_.rate);
  }

  void ours(int from, int to) {
    const auto start = Clock::now() + std::chrono::milliseconds(20);
    for (int i = from; i < to; ++i) {
      std::this_thread::sleep_until(due(start, i - from));
      line_.on_core([&] {
        line_.world->resources[thing(i)] = R"({"retention":"1h","partitions":3})";
        return 0;
      });
      line_.change(thing(i));
    }
    acks_.wait_for(static_cast<std::size_t>(to));
    for (int i = from; i < to; ++i) {
      ours_.push_back(Millis(acks_.of("thing/t" + std::to_string(i)).first - due(start, i - from)).count());
    }
  }

  void bare(int from, int to) {
    const auto start = Clock::now() + std::chrono::milliseconds(20);
    for (int i = from; i < to; ++i) {
      const std::string bytes = acks_.of("thing/t" + std::to_string(i)).second;
      std::this_thread::sleep_until(due(start, i - from));
      floor_.deliver(bytes);
      bare_.push_back(Millis(Clock::now() - due(start, i - from)).count());
    }
  }

  Options options_;
  test::TempDir dir_;
  test::NatsServer nats_;
  Acks acks_;
  test::EngineLine line_;
  test::Floor floor_;
  std::vector<double> ours_, bare_;
};

int measure(const Options& options) {
  Run run(options);
  ::sync();  // what a build or other tests left in memory would be written during a turn
  run.turns();
  const Percentiles ours = run.ours(), floor = run.floor();
  std::printf("%d changes at %d a second, in turns of %d\n", options.changes, options.rate, options.turn);
  print("fdatasync + publish, bare", floor);
  print("record received -> ack", ours);
  const bool quiet = floor.p99 <= kQuiet * floor.p50;
  std::printf("%-28s p50 %7.2f      p99 %7.2f                        p99 of a turn %7.2f      (at most %.1f)\n",
              "ratio", ours.p50 / floor.p50, ours.p99 / floor.p99, ours.turn / floor.turn, options.most);
  if (!quiet)
    std::printf("LOUD: the disk stood still under the floor alone, so the p99 of the whole run is not judged\n");
  return ours.turn <= options.most * floor.turn && (!quiet || ours.p99 <= options.most * floor.p99) ? 0 : 1;
}

}  // namespace
}  // namespace driftd::bench

int main(int argc, char** argv) {
  driftd::bench::Options options;
  CLI::App app("Latency of our own part beside its floor");
  app.add_option("--changes", options.changes);
  app.add_option("--rate", options.rate, "changes a second");
  app.add_option("--turn", options.turn);
  app.add_option("--most", options.most, "exit 1 when p99 is above so many times the floor's");
  CLI11_PARSE(app, argc, argv);
  try {
    int out = 1;
    for (int i = 0; i < driftd::bench::kRuns && out == 1; ++i) out = driftd::bench::measure(options);
    return out;
  } catch (const std::exception& e) {
    std::cerr << "bench_latency: " << e.what() << '\n';
    return 2;
  }
}
