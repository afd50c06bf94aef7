// SPDX-License-Identifier: Apache-2.0
// Group chaos: what happens in production and not in an author's tests.
#include <fmt/format.h>
#include <poll.h>

#include <csignal>
#include <thread>

#include "check/own_jail.hpp"
#include "check/progress.hpp"
#include "check/random.hpp"
#include "check/scarcity.hpp"
#include "check/sink/groups.hpp"
#include "check/sink/stand.hpp"

namespace driftd::check::sink {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

/// Delivers in a child process that is killed at the k-th host function, or after `wait_ms` if k is 0.
void kill_while_delivering(const Subject& subject, std::uint64_t k, int wait_ms) {
  (void)run_in_child(seconds(60), [&] {
    Stand stand(subject, "chaos.kill");
    const auto at = std::make_shared<std::atomic<std::uint64_t>>(0);
    CallFaults faults;
    faults.hook = [at, k](HostCall&) {
      if (++*at == k) ::raise(SIGKILL);
    };
    if (k == 0) {
      std::thread([wait_ms] {
        (void)::poll(nullptr, 0, wait_ms);
        ::raise(SIGKILL);
      }).detach();
    }
    const auto instance = SinkInstance::open_plain(stand.subject());
    for (;;) {
      if (instance->deliver(stand.events().full_batch(16), faults).threw) return std::string();
    }
  });
}

/// Delivers in a new process. Throws as its check did.
std::string deliver_in_child(const Subject& subject) {
  return text_or_rethrow(run_in_child(seconds(60), [&] {
    Stand stand(subject, "chaos.kill");
    const auto [trace, instance] =
        SinkInstance::open(stand.subject(), {stand.subject().settings_json, subject.secrets});
    if (instance == nullptr) throw RuleBroken("open answered " + trace.why());
    stand.expect_delivers(*instance, "a plain process", 2);
    const CallTrace counted = instance->deliver(stand.events().full_batch(16));
    return std::to_string(counted.callbacks);
  }));
}

void kill(const Subject& subject) {
  constexpr int kKills = 12;
  auto random = random_of(subject, "chaos.kill");
  const std::uint64_t functions = std::stoull(deliver_in_child(subject));
  for (int i = 0; i < kKills; ++i) {
    const std::uint64_t k = i % 2 == 0 ? 1 + below(random, functions) : 0;
    kill_while_delivering(subject, k, static_cast<int>(below(random, 60)));
    try {
      (void)deliver_in_child(subject);
    } catch (const RuleBroken& e) {
      throw RuleBroken(
          fmt::format("after a SIGKILL in the middle of a deliver a new process fails: {}; keep no state that a dead "
                      "process leaves "
                      "locked",
                      e.what()));
    }
  }
}

void jail(const Subject& subject) {
  expect_jail();
  (void)deliver_in_child(subject);
  const std::string schema =
      text_or_rethrow(run_in_child(seconds(20), [&] { return SinkPlugin::load(subject).settings_schema(); }));
  const Receiver receiver({subject.answer, 0, true, subject.socket_folder});  // outside of the jail
  Subject inside = subject;
  inside.settings_json = with_addresses(subject.settings_json, receiver.addresses());
  (void)text_or_rethrow(run_in_child(seconds(100), [&] {
    enter_jail(inside, schema, inside.settings_json);
    auto [trace, instance] = SinkInstance::open(inside, {inside.settings_json, subject.secrets});
    if (instance == nullptr) throw RuleBroken("inside the worker's jail open answered " + trace.why() + kNoEscape);
    EventMaker events(SinkPlugin::load(inside).info(), subject.seed);
    for (int i = 0; i < 3; ++i) {
      const Batch batch = events.full_batch(8);
      const CallTrace delivered = instance->deliver(batch);
      if (all_delivered(delivered, batch.size())) continue;
      throw RuleBroken("inside the worker's jail: expected all delivered, found " +
                       describe_failure(delivered, batch.size()) + kNoEscape);
    }
    (void)instance->probe();
    return std::string();
  }));
}

/// A random sequence of calls that the agent may make. The seed replays it.
class Walk {
 public:
  explicit Walk(Stand& stand) : stand_(stand), random_(random_of(stand.subject(), "chaos.sequence")), instances_(3) {}

  void run(int steps, seconds time_limit) {
    const auto until = std::chrono::steady_clock::now() + time_limit;
    for (step_ = 1; step_ <= steps && std::chrono::steady_clock::now() < until; ++step_) {
      auto& instance = instances_[below(random_, instances_.size())];
      if (instance != nullptr) {
        act(instance);
        continue;
      }
      note("open");
      instance = SinkInstance::open_plain(stand_.subject());
    }
  }

 private:
  void note(const std::string& what) {
    trail_ += (trail_.empty() ? "" : ", ") + what;
    if (trail_.size() > 200) trail_.erase(0, trail_.size() - 200);
    set_progress_note(fmt::format("step {} of the seed {}: ...{}", step_, stand_.subject().seed, trail_));
  }

  CallFaults random_faults() {
    CallFaults out;
    switch (below(random_, 3)) {
      case 0:
        out.cancel_at = below(random_, 20);
        break;
      case 1:
        out.time = milliseconds(below(random_, 30));
        break;
      default:
        out.deny_secrets = true;
    }
    return out;
  }

  void deliver(const SinkInstance& instance) {
    note("deliver");
    const std::string when = fmt::format("step {} of a sequence of legal calls (--seed {} replays it): ...{}", step_,
                                         stand_.subject().seed, trail_);
    stand_.expect_delivers(instance, when);
  }

  void unkind(const SinkInstance& instance) {
    note("unkind deliver");
    const Batch batch = stand_.events().full_batch(8);
    stand_.expect_arrived(batch, instance.deliver(batch, random_faults()), "an unkind deliver: ..." + trail_);
  }

  void two_at_once(const SinkInstance& instance) {
    note("deliver and probe at once");
    RunningCall running = instance.start_deliver(stand_.events().full_batch(8));
    (void)instance.probe();
    if (below(random_, 2) == 0) running.cancel();
    (void)running.wait();
  }

  void act(std::unique_ptr<SinkInstance>& instance) {
    switch (below(random_, 8)) {
      case 0:
      case 1:
        return deliver(*instance);
      case 2:
        note("wake");
        return instance->wake();
      case 3:
        note("probe");
        (void)instance->probe();
        return;
      case 4:
        return unkind(*instance);
      case 5:
        return two_at_once(*instance);
      case 6:
        note("flush");
        if (instance->has_flush()) (void)instance->flush();
        return;
      default:
        note("close");
        instance->close();
        instance.reset();
    }
  }

  Stand& stand_;
  std::mt19937_64 random_;
  std::vector<std::unique_ptr<SinkInstance>> instances_;
  std::string trail_;
  int step_ = 0;
};

void sequence(const Subject& subject) {
  Stand stand(subject, "chaos.sequence");
  stand.expect_works_at_all();
  Walk(stand).run(400, seconds(40));
  set_progress_note("");
}

void few_descriptors(const Subject& subject) {
  Stand stand(subject, "chaos.few_descriptors");
  stand.expect_works_at_all();
  const auto instance = SinkInstance::open_plain(stand.subject());
  stand.expect_delivers(*instance, "with enough descriptors");
  for (rlim_t left = 0; left <= 3; ++left) {
    set_progress_note(fmt::format("with {} descriptors left", left));
    const FewDescriptors few(left);
    (void)instance->deliver(stand.events().full_batch(8));
    (void)instance->probe();
    const auto [opened, other] = SinkInstance::open(stand.subject(), {stand.subject().settings_json, subject.secrets});
    if (opened.status != DRIFTD_OK && opened.diagnostics.empty())
      throw RuleBroken(fmt::format("open with {} descriptors left answered {}", left, opened.why()));
    if (other == nullptr) continue;
    const Batch batch = stand.events().full_batch(8);
    stand.expect_arrived(batch, other->deliver(batch), fmt::format("with {} descriptors left", left));
  }
  stand.expect_delivers(*instance, "with descriptors again");
}

constexpr Check kChaosChecks[] = {
    {"chaos.kill", Level::must, "killed at random points of a deliver, a new process delivers", seconds(200), &kill},
    {"chaos.jail", Level::must, "everything works inside the worker's jail", seconds(120), &jail},
    {"chaos.sequence", Level::must, "random sequences of legal calls", seconds(120), &sequence},
    {"chaos.few_descriptors", Level::should, "no descriptor left: an error, not a crash", seconds(120),
     &few_descriptors},
};

}  // namespace

std::span<const Check> chaos_checks() { return kChaosChecks; }

}  // namespace driftd::check::sink
