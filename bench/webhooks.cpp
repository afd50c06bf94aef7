// SPDX-License-Identifier: Apache-2.0
// What a bad webhook costs the others, from the commit of an event to its acknowledgement, with a real store, a real
// relay, and a real HTTP receiver in a process of its own. Each bad line runs in turns with a good one in the same run,
// so that both meet the same machine and the same neighbours:
//   hang    50 endpoints, of which one answers nothing for 20 s a call, beside 50 good ones
//   poison  10,000 resources of one endpoint, of which the events of one are refused for ever, beside 10,000 good ones
// Judged is whether all of the others arrived, and their p99, at most 1.2 times that without the bad one: the p99 of a
// turn, as the median of all turns, for a machine that stands still hits single turns of one or the other; and the p99
// of the whole run, where that without the bad one shows that the machine was quiet. Exit 1: too much in three runs one
// after the other.
#include <unistd.h>
#include <CLI/CLI.hpp>
#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/thread_pool.hpp>
#include <cstdio>
#include <iostream>

#include "delivery/relay.hpp"
#include "sinks/webhook/webhook_sink.hpp"
#include "store/sqlite_store.hpp"
#include "support/process.hpp"
#include "unit/store/drafts.hpp"
#include "webhook_receiver.hpp"

namespace driftd::bench {
namespace {

using Steady = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr int kRuns = 3;
constexpr double kQuiet = 3;  // on a quiet machine the p99 is at most this multiple of the median

struct Options {
  int turns = 30, events = 10;  ///< of `hang`: turns of each line, commits in a turn
  int rate = 25;                ///< commits a second
  int resources = 10'000;       ///< of `poison`
  double most = 1.2;
  std::string only;  ///< hang, poison; empty: both
  std::string name;  ///< of this program
};

// --- one line: a store, a relay, its webhooks -----------------------------------------------------------------------

/// Collects the ages of delivered events. Core thread.
class Ages final : public core::Metrics {
 public:
  std::string bad;                ///< the sink that is not counted
  std::vector<double> delivered;  ///< ms from the commit to the acknowledgement
  std::vector<double> turns;      ///< p99 of each turn, ms

  /// Ends a turn that began when so many were delivered.
  void end_turn(std::size_t from) {
    std::vector<double> turn(delivered.begin() + static_cast<std::ptrdiff_t>(from), delivered.end());
    std::sort(turn.begin(), turn.end());
    turns.push_back(turn.at(turn.size() * 99 / 100));
  }
  void observe_delivery(const std::string& sink, const std::string& outcome, Seconds age) override {
    if (outcome == "delivered" && sink != bad) delivered.push_back(age.count() * 1e3);
  }
  void observe_refresh(const std::string&, Seconds, bool) override {}
  void drift_detected(const std::string&, core::ChangeClass) override {}
  void event_drafted(const std::string&, std::uint64_t) override {}
  void drafts_ended(const std::string&, std::uint64_t) override {}
  void event_withdrawn(const std::string&, std::uint64_t) override {}
  void event_published(const std::string&, const std::string&) override {}
  void records(const std::string&, std::uint64_t, std::uint64_t) override {}
  void suppressed(const std::string&, const std::string&, std::uint64_t) override {}
  void queue(const std::string&, std::uint64_t, std::uint64_t) override {}
  void forget(const std::string&) override {}
};

template <class T>
T must(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().message);
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

/// Lets the core thread work for a moment, as it does between two commits.
void pause(asio::io_context& core, Steady::time_point until) {
  core.restart();
  core.run_until(until);
}

class Line {
 public:
  /// A webhook for each URL. `bad` is the place of the one that is not counted, -1: none.
  Line(asio::io_context& core, asio::thread_pool& io, const std::vector<std::string>& urls, int bad) : core_(core) {
    store::Settings settings;
    settings.data_dir = dir_.path() / "data";
    std::filesystem::create_directories(settings.data_dir);
    std::filesystem::permissions(settings.data_dir, std::filesystem::perms::owner_all);
    settings.route = [](const core::AgentEvent&) { return std::vector<std::string>(); };
    store_ = must(store::SqliteStore::open(settings, store_thread_.get_executor(), io.get_executor(), clock_));
    delivery::RelaySettings relay;
    relay.agent = "bench";
    relay.routes = settings.route;
    relay.metrics = &ages;
    relay_ = std::make_unique<delivery::Relay>(core.get_executor(), *store_, clock_, relay);
    for (std::size_t i = 0; i < urls.size(); ++i) {
      sinks::WebhookSettings hook;
      hook.url = urls[i];
      hook.secrets = {"whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3"};
      hook.allow_http_loopback = true;
      names_.push_back("hook-" + std::to_string(i));
      if (static_cast<int>(i) == bad) ages.bad = names_.back();
      relay_->add_sink(names_.back(), "webhook",
                       must(sinks::open_webhook(names_.back(), hook, core.get_executor(), io.get_executor(), clock_)));
    }
    must(wait(relay_->start()));
    while (must(wait(store_->sinks())).size() < urls.size()) pause(core, Steady::now() + 10ms);
    must(wait(store_->commit(test::registration())));
  }
  ~Line() {
    wait(stop());
    relay_.reset();
    store_.reset();
    store_thread_.join();
  }

  void commit(std::vector<std::string> resources) {
    std::vector<core::EventDraft> drafts;
    for (const auto& resource : resources) drafts.push_back(test::event_draft(resource, names_));
    must(wait(store_->commit(test::page_of({}, std::move(drafts)))));
    relay_->wake();
  }
  /// Lets the core thread work until so many events in all were acknowledged by those that are counted.
  void run_until_delivered(std::size_t count) {
    const auto until = Steady::now() + 30s;
    while (ages.delivered.size() < count) {
      if (Steady::now() > until) {
        throw std::runtime_error(std::to_string(ages.delivered.size()) + " of " + std::to_string(count) +
                                 " deliveries were acknowledged; " + state_of(1));
      }
      core_.restart();
      core_.run_one_for(100ms);
    }
  }
  /// For an error.
  std::string state_of(std::size_t at) const {
    const auto all = relay_->views();
    const auto& view = all.at(std::min(at, all.size() - 1));
    return view.name + ": " + view.state + ", " + std::to_string(view.waiting) + " wait, " +
           std::to_string(view.in_flight) + " under way, " + std::to_string(view.delivered) + " delivered" +
           (view.last_error.empty() ? "" : ", " + view.last_error);
  }
  core::SinkView view(std::size_t at) const { return relay_->views().at(at); }

  Ages ages;

 private:
  Task<bool> stop() {
    co_await relay_->stop();
    co_return true;
  }
  template <class T>
  T wait(Task<T> task) {
    std::optional<T> out;
    asio::co_spawn(core_, std::move(task), [&out](std::exception_ptr error, T value) {
      if (error) std::rethrow_exception(error);
      out = std::move(value);
    });
    while (!out) {
      core_.restart();
      core_.run_one();
    }
    return std::move(*out);
  }

  asio::io_context& core_;
  test::TempDir dir_;
  SystemClock clock_;
  asio::thread_pool store_thread_{1};
  std::unique_ptr<store::SqliteStore> store_;
  std::unique_ptr<delivery::Relay> relay_;
  std::vector<std::string> names_;
};

// --- figures --------------------------------------------------------------------------------------------------------

struct Figures {
  double p50 = 0, p99 = 0, max = 0;
};

Figures figures_of(std::vector<double> ages) {
  std::sort(ages.begin(), ages.end());
  const auto at = [&ages](double part) {
    return ages.at(static_cast<std::size_t>(part * static_cast<double>(ages.size() - 1)));
  };
  return {at(0.5), at(0.99), ages.back()};
}

int judge(const char* what, const Ages& good, const Ages& bad, double most) {
  const Figures without = figures_of(good.delivered), with = figures_of(bad.delivered);
  const auto print = [](const char* name, const Figures& f, std::size_t count) {
    std::printf("  %-22s p50 %7.2f ms   p99 %7.2f ms   max %7.2f ms   %zu deliveries\n", name, f.p50, f.p99, f.max,
                count);
  };
  std::printf("%s\n", what);
  print("without", without, good.delivered.size());
  print("with", with, bad.delivered.size());
  const double ratio = with.p99 / without.p99;
  const double turn_without = figures_of(good.turns).p50, turn_with = figures_of(bad.turns).p50;
  const double turn_ratio = turn_with / turn_without;
  const bool quiet = without.p99 <= kQuiet * without.p50;
  std::printf("  %-22s p50 %7.2f      p99 %7.2f      max %7.2f      (p99: at most %.1f)\n", "ratio",
              with.p50 / without.p50, ratio, with.max / without.max, most);
  std::printf("  %-22s without %7.2f ms   with %7.2f ms   ratio %5.2f      (at most %.1f)\n", "p99 of a turn, median",
              turn_without, turn_with, turn_ratio, most);
  if (!quiet)
    std::printf("  LOUD: the machine stood still without the bad one, so the p99 of the whole run is not judged\n");
  std::fflush(stdout);
  return turn_ratio <= most && (!quiet || ratio <= most) ? 0 : 1;
}

class Receiver {
 public:
  explicit Receiver(const std::string& program) : port_(test::free_port()) {
    child_ = test::Child({program, "--receive", std::to_string(port_)}, {"", {}, {}});
    const auto listens = [this] {
      asio::io_context io;
      tcp::socket socket(io);
      boost::system::error_code failed;
      socket.connect(tcp::endpoint(asio::ip::address_v4::loopback(), static_cast<std::uint16_t>(port_)), failed);
      return !failed;
    };
    if (!test::eventually(listens)) throw std::runtime_error("the receiver does not listen");
  }
  std::string url(const std::string& path) const { return "http://127.0.0.1:" + std::to_string(port_) + path; }

 private:
  int port_;
  test::Child child_;
};

// --- the two questions ----------------------------------------------------------------------------------------------

int measure_hang(const Options& options) {
  constexpr int kEndpoints = 50;
  const Receiver receiver(options.name);
  asio::io_context core(1);
  auto work = asio::make_work_guard(core);
  asio::thread_pool io(4);
  std::vector<std::string> urls;
  for (int i = 0; i < kEndpoints; ++i) urls.push_back(receiver.url("/good/" + std::to_string(i)));
  Line good(core, io, urls, 0);
  urls[0] = receiver.url("/hang");
  Line bad(core, io, urls, 0);
  std::size_t committed = 0;
  const auto turn = [&](Line& line, std::size_t before) {
    for (int i = 0; i < options.events; ++i) {
      const auto next = Steady::now() + std::chrono::microseconds(1'000'000 / options.rate);
      line.commit({"r" + std::to_string((before + static_cast<std::size_t>(i)) % 1'000)});
      pause(core, next);
    }
    line.run_until_delivered((before + static_cast<std::size_t>(options.events)) * (kEndpoints - 1));
    line.ages.end_turn(before * (kEndpoints - 1));
  };
  turn(good, 0);  // connections are opened, and the first calls hang
  turn(bad, 0);
  committed = static_cast<std::size_t>(options.events);
  good.ages.delivered.assign(good.ages.delivered.size(), -1);
  bad.ages.delivered.assign(bad.ages.delivered.size(), -1);
  for (int i = 0; i < options.turns; ++i, committed += static_cast<std::size_t>(options.events)) {
    turn(i % 2 == 0 ? good : bad, committed);
    turn(i % 2 == 0 ? bad : good, committed);
  }
  for (auto* line : {&good, &bad}) {
    std::erase(line->ages.delivered, -1);
    line->ages.turns.erase(line->ages.turns.begin());  // the one in which connections were opened
  }
  const auto hanging = bad.view(0);
  if (hanging.delivered > static_cast<std::int64_t>(committed) / 2) {
    throw std::runtime_error("the hanging endpoint did not hang");
  }
  std::printf("the hanging endpoint acknowledged %ld of %zu, %ld are under way\n", static_cast<long>(hanging.delivered),
              committed, static_cast<long>(hanging.in_flight));
  return judge("49 endpoints beside one that answers nothing for 20 s a call", good.ages, bad.ages, options.most);
}

int measure_poison(const Options& options) {
  constexpr int kPage = 10, kTurn = 500;
  const Receiver receiver(options.name);
  asio::io_context core(1);
  auto work = asio::make_work_guard(core);
  asio::thread_pool io(4);
  Line good(core, io, {receiver.url("/good")}, -1), bad(core, io, {receiver.url("/good")}, -1);
  std::int64_t refused = 0;
  std::size_t good_from = 0, bad_from = 0;
  for (int first = 0; first < options.resources; first += kPage) {
    std::vector<std::string> page;
    for (int i = first; i < first + kPage; ++i) page.push_back("r" + std::to_string(i));
    auto poisoned = page;
    // in the place of another resource, so that both lines do the same work
    if (first % 100 == 0) {
      page.back() = "one-of-them";
      poisoned.back() = kPoison;
      ++refused;
    }
    const auto all = static_cast<std::size_t>(first) + kPage;
    const auto both = [&](bool bad_first) {
      for (const bool is_bad : {bad_first, !bad_first}) {
        Line& line = is_bad ? bad : good;
        line.commit(is_bad ? poisoned : page);
        line.run_until_delivered(all - (is_bad ? static_cast<std::size_t>(refused) : 0));
      }
    };
    both(first / kPage % 2 == 0);
    if (all % kTurn != 0) continue;
    for (auto* line : {&good, &bad}) {
      line->ages.end_turn(std::exchange(line == &good ? good_from : bad_from, line->ages.delivered.size()));
    }
  }
  const auto view = bad.view(0);
  std::printf("of the one resource %ld events wait, %ld are dead letters; the circuit: %s\n",
              static_cast<long>(view.waiting), static_cast<long>(view.dead), view.state.c_str());
  if (view.waiting + view.dead != refused) throw std::runtime_error("not exactly its events wait");
  return judge("10,000 resources, one of which is refused for ever", good.ages, bad.ages, options.most);
}

int measure(const Options& options, const std::string& what, int (*run)(const Options&)) {
  if (!options.only.empty() && options.only != what) return 0;
  int out = 1;
  for (int i = 0; i < kRuns && out == 1; ++i) out = run(options);
  return out;
}

}  // namespace
}  // namespace driftd::bench

int main(int argc, char** argv) {
  driftd::bench::Options options;
  options.name = "/proc/self/exe";
  int port = 0;
  CLI::App app("What one bad webhook costs the others");
  app.add_option("--turns", options.turns);
  app.add_option("--events", options.events, "commits in a turn");
  app.add_option("--rate", options.rate, "commits a second");
  app.add_option("--resources", options.resources);
  app.add_option("--most", options.most, "exit 1 if the p99 is above this multiple of the p99 without the bad one");
  app.add_option("--only", options.only)->check(CLI::IsMember({"hang", "poison"}));
  app.add_option("--receive", port, "be the receiver, on this port");
  CLI11_PARSE(app, argc, argv);
  try {
    if (port != 0) return driftd::bench::receive(port);
    options.name = std::filesystem::read_symlink(options.name).string();
    const int hang = driftd::bench::measure(options, "hang", &driftd::bench::measure_hang);
    const int poison = driftd::bench::measure(options, "poison", &driftd::bench::measure_poison);
    return std::max(hang, poison);
  } catch (const std::exception& e) {
    std::cerr << "bench_webhooks: " << e.what() << '\n';
    return 2;
  }
}
