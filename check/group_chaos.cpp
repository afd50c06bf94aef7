// SPDX-License-Identifier: Apache-2.0
// Group chaos: what happens in production and not in an author's tests.
#include <fmt/format.h>

#include "check/group_chaos.hpp"
#include "check/listing.hpp"
#include "check/progress.hpp"
#include "check/scarcity.hpp"

namespace driftd::check {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

/// A random sequence of calls that the agent may make. The seed replays it.
class Walk {
 public:
  explicit Walk(const Subject& subject)
      : subject_(subject),
        random_(random_of(subject, "chaos.sequence")),
        instances_(3) {}

  void run(int steps, seconds time_limit) {
    const auto until = std::chrono::steady_clock::now() + time_limit;
    instances_[0] = std::make_unique<Instance>(subject_);
    whole_ = listing_of(list(*instances_[0]));
    for (step_ = 1; step_ <= steps && std::chrono::steady_clock::now() < until; ++step_) {
      auto& instance = instances_[below(random_, instances_.size())];
      if (instance == nullptr) {
        note("open");
        instance = open();
      } else {
        act(instance);
      }
    }
  }

 private:
  void note(const std::string& what) {
    trail_ += (trail_.empty() ? "" : ", ") + what;
    if (trail_.size() > 200) trail_.erase(0, trail_.size() - 200);
    set_progress_note(fmt::format("step {} of the seed {}: ...{}", step_, subject_.seed, trail_));
  }

  template <class Why = RuleBroken>
  [[noreturn]] void broken(const std::string& text) const {
    throw Why(fmt::format("{} in step {} of a sequence of legal calls (--seed {} replays it): ...{}", text, step_,
                          subject_.seed, trail_));
  }

  std::unique_ptr<Instance> open() {
    auto [trace, instance] = Instance::open(subject_, subject_.settings_json, subject_.secrets);
    if (instance == nullptr) broken("open answered " + trace.why());
    return std::move(instance);
  }

  CallFaults random_faults() {
    CallFaults out;
    switch (below(random_, 4)) {
      case 0:
        out.cancel_at = below(random_, 40);
        break;
      case 1:
        out.finish_soon_at = 1 + below(random_, 20);
        break;
      case 2:
        out.time = milliseconds(below(random_, 30));
        break;
      default:
        out.deny_secrets = true;
    }
    return out;
  }

  void refresh(Instance& instance) {
    note("refresh");
    const CallTrace trace = instance.refresh();
    if (trace.status != DRIFTD_OK) broken("refresh answered " + trace.why());
    const Listing found = listing_of(trace);
    if (difference(instance.provider(), whole_, found).empty()) return;
    Listing again = listing_of(list(instance));  // the system itself may have changed
    const auto differs = difference(instance.provider(), found, again);
    if (!differs.empty()) broken<ListingDiffers>("refresh gives another listing each time: " + differs);
    whole_ = std::move(again);
  }

  void two_at_once(Instance& instance) {
    note("refresh and health at once");
    RunningCall running = instance.start(Function::refresh, CallArguments{}, CallFaults{});
    (void)instance.health();
    if (below(random_, 2) == 0) running.cancel();
    (void)running.wait();
  }

  void read(Instance& instance) {
    note("read");
    std::vector<Identity> asked{{{instance.provider().info().kinds.front(), "no-such-resource"}, {}}};
    for (const auto& [identity, record] : whole_) {
      if (below(random_, 3) == 0 && asked.size() < 20) asked.push_back(identity);
    }
    const CallTrace trace = instance.read(asked);
    if (trace.status != DRIFTD_OK) broken("read answered " + trace.why());
  }

  void ask(Instance& instance) {
    note("describe, schema, query");
    (void)instance.provider().describe();
    (void)instance.provider().schema("settings");
    (void)instance.provider().query("driftd.watch", 1);
  }

  void watch(Instance& instance) {
    if (!instance.provider().info().has_watch) return;
    note("watch");
    RunningCall running = instance.start(Function::watch, CallArguments{}, CallFaults{});
    (void)running.returned_within(milliseconds(below(random_, 40)));
    running.cancel();
    (void)running.wait();
  }

  void act(std::unique_ptr<Instance>& instance) {
    switch (below(random_, 10)) {
      case 0:
      case 1:
        return refresh(*instance);
      case 2:
        return read(*instance);
      case 3:
        return note("wake"), instance->wake();
      case 4:
        return note("health"), static_cast<void>(instance->health());
      case 5:
        return note("unkind refresh"), static_cast<void>(instance->refresh({}, random_faults()));
      case 6:
        return two_at_once(*instance);
      case 7:
        return ask(*instance);
      case 8:
        return watch(*instance);
      default:
        note("close"), instance->close(), instance.reset();
    }
  }

  const Subject& subject_;
  std::mt19937_64 random_;
  std::vector<std::unique_ptr<Instance>> instances_;
  Listing whole_;
  std::string trail_;
  int step_ = 0;
};

void sequence(const Subject& subject) {
  Walk(subject).run(400, seconds(40));
  set_progress_note("");
}

void clock(const Subject& subject) {
  constexpr std::int64_t kYear = 365 * std::int64_t{86'400'000'000'000};
  const Instance instance(subject);
  const Listing whole = listing_of(list(instance));
  set_progress_note("the host's clock jumps in both directions");
  static std::atomic<std::uint64_t> calls{0};
  Host::get().set_clock([](std::int64_t real) {
    const std::int64_t jumps[] = {0, kYear, -kYear, -real, -real + 1, 20 * kYear, -20 * kYear, -real - kYear};
    return real + jumps[calls++ % 8];
  });
  for (int i = 0; i < 8; ++i) {
    const CallTrace trace = instance.refresh();
    if (trace.status != DRIFTD_OK) {
      throw RuleBroken(
          fmt::format("while the host's clock jumps refresh answered {}; measure time with CLOCK_MONOTONIC, the "
                      "wall clock is for records only",
                      trace.why()));
    }
    expect_true_completes(instance, whole, trace, "while the host's clock jumps");
    (void)instance.health();
  }
  Host::get().set_clock(nullptr);
  (void)list(instance);
}

void few_descriptors(const Subject& subject) {
  const Instance instance(subject);
  const CallTrace whole = list(instance);
  const auto expect_diagnostic = [](const CallTrace& trace, const char* what, rlim_t left) {
    if (trace.status != DRIFTD_OK && trace.diagnostics.empty()) {
      throw RuleBroken(fmt::format("{} with {} descriptors left answered {}", what, left, trace.why()));
    }
  };
  for (rlim_t left = 0; left <= 3; ++left) {
    set_progress_note(fmt::format("with {} descriptors left", left));
    const FewDescriptors few(left);
    const CallTrace trace = instance.refresh();
    expect_diagnostic(trace, "refresh", left);
    expect_true_completes(instance, listing_of(whole), trace, "without descriptors");
    expect_diagnostic(instance.read({{{instance.provider().info().kinds.front(), "no-such-resource"}, {}}}), "read",
                      left);
    (void)instance.health();
    auto [opened, other] = Instance::open(subject, subject.settings_json, subject.secrets);
    expect_diagnostic(opened, "open", left);
    if (other != nullptr) expect_diagnostic(other->refresh(), "refresh of a new instance", left);
  }
  const CallTrace after = instance.refresh();
  if (after.status != DRIFTD_OK) {
    throw RuleBroken(fmt::format("with descriptors again, refresh still answers {}", after.why()));
  }
}

constexpr Check kChaosChecks[] = {
    {"chaos.kill", Level::must, "killed at random points, a new process lists the same", seconds(300), &kill_and_list},
    {"chaos.jail", Level::must, "everything works inside the worker's jail", seconds(120), &inside_jail},
    {"chaos.sequence", Level::must, "random sequences of legal calls", seconds(120), &sequence},
    {"chaos.clock", Level::must, "a host clock that jumps in both directions", seconds(120), &clock},
    {"chaos.few_descriptors", Level::should, "no descriptor left: an error, not a crash", seconds(120),
     &few_descriptors},
};

}  // namespace

std::span<const Check> chaos_checks() { return kChaosChecks; }

}  // namespace driftd::check
