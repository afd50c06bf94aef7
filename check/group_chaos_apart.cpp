// SPDX-License-Identifier: Apache-2.0
// Group chaos, second room: checks that need processes of their own.
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <csignal>

#include "check/group_chaos.hpp"
#include "check/kept_listing.hpp"
#include "check/runner.hpp"
#include "check/stage.hpp"

namespace driftd::check {
namespace {

using std::chrono::seconds;

/// Ends this check as the child's work ended.
std::string handed_on(const Outcome& outcome) {
  if (outcome.ending == Ending::broken) throw Broken(outcome.text);
  if (outcome.ending == Ending::not_made) throw NotMade(outcome.text);
  if (outcome.ending == Ending::not_applicable) throw NotApplicable(outcome.text);
  return outcome.text;
}

/// Lists in a process of its own and keeps it; how many host functions that took.
std::uint64_t list_apart(const Subject& subject, KeptListing& kept) {
  return std::stoull(handed_on(run_apart(seconds(60), [&] {
    const Instance instance(subject);
    const Said said = list(instance);
    kept.keep(listing_of(said));
    return std::to_string(said.callbacks);
  })));
}

/// Opens and lists in a process of its own that is killed at the k-th host function; 0: after `wait_ms`.
void die_apart(const Subject& subject, std::uint64_t k, int wait_ms) {
  (void)run_apart(seconds(60), [&] {
    const auto at = std::make_shared<std::atomic<std::uint64_t>>(0);
    Treatment treatment;
    treatment.hook = [at, k](HostCall&) {
      if (++*at == k) ::raise(SIGKILL);
    };
    if (k == 0) {
      std::thread([wait_ms] {
        (void)::poll(nullptr, 0, wait_ms);
        ::raise(SIGKILL);
      }).detach();
    }
    auto [said, instance] = Instance::open(subject, subject.settings_json, subject.secrets, treatment);
    while (instance != nullptr && said.threw == false) (void)instance->refresh({}, treatment);
    return std::string();
  });
}

/// What a new process finds to be different after a kill, or empty.
std::string changed_apart(const Subject& subject, KeptListing& kept) {
  const Outcome outcome = run_apart(seconds(60), [&] {
    auto [said, instance] = Instance::open(subject, subject.settings_json, subject.secrets);
    if (instance == nullptr) throw Broken("a new process cannot open an instance any more: " + said.why());
    const Said listed = instance->refresh();
    if (listed.status != DRIFTD_OK) throw Broken("a new process cannot list any more: " + listed.why());
    return difference(instance->provider(), kept.read(), listing_of(listed));
  });
  if (outcome.ending == Ending::broken) {
    throw Broken(fmt::format("after a SIGKILL in the middle of a call: {}; keep no state that a dead process leaves locked",
                             outcome.text));
  }
  return handed_on(outcome);
}

}  // namespace

void kill_and_list(const Subject& subject) {
  constexpr int kKills = 10;
  auto random = random_of(subject, "chaos.kill");
  KeptListing kept;
  const std::uint64_t functions = list_apart(subject, kept);
  int differed = 0;
  for (int i = 0; i < kKills; ++i) {
    const std::uint64_t k = i % 2 == 0 ? 1 + below(random, functions) : 0;
    die_apart(subject, k, static_cast<int>(below(random, 60)));
    const std::string found = changed_apart(subject, kept);
    if (found.empty()) continue;
    if (++differed > kKills / 2) throw Broken("after kills a new process lists something else: " + found);
    (void)list_apart(subject, kept);  // the system may have changed; it does not after most kills
  }
}

void inside_jail(const Subject&) { throw NotMade("this build has no sandbox"); }

}  // namespace driftd::check
