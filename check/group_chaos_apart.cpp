// SPDX-License-Identifier: Apache-2.0
// Group chaos, second room: checks that need processes of their own.
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

#include "check/group_chaos.hpp"
#include "check/kept_listing.hpp"
#include "check/runner.hpp"
#include "check/stage.hpp"
#include "host/jail_paths.hpp"
#include "ipc/plugin_file.hpp"
#include "worker/jail.hpp"

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
  return std::stoull(handed_on(run_apart(seconds(100), [&] {
    const Instance instance(subject);
    const Said said = list(instance);
    kept.keep(listing_of(said));
    return std::to_string(said.callbacks);
  })));
}

/// Opens and lists in a process of its own that is killed at the k-th host function; 0: after `wait_ms`.
void die_apart(const Subject& subject, std::uint64_t k, int wait_ms) {
  (void)run_apart(seconds(100), [&] {
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

/// NotMade when new processes that nobody disturbs list something else each time.
void expect_quiet_apart(const Subject& subject) {
  const std::string found = handed_on(run_apart(seconds(100), [&] { return moves(subject); }));
  if (!found.empty()) {
    throw NotMade(fmt::format("the system changes while it is looked at ({}): check a quiet one", found));
  }
}

/// What a new process finds to be different after a kill, or empty.
std::string changed_apart(const Subject& subject, KeptListing& kept) {
  const Outcome outcome = run_apart(seconds(100), [&] {
    auto [said, instance] = Instance::open(subject, subject.settings_json, subject.secrets);
    if (instance == nullptr) throw Broken("a new process cannot open an instance any more: " + said.why());
    const Said listed = instance->refresh();
    if (listed.status != DRIFTD_OK) throw Broken("a new process cannot list any more: " + listed.why());
    return difference(instance->provider(), kept.read(), listing_of(listed));
  });
  if (outcome.ending == Ending::broken) {
    throw Broken(fmt::format(
        "after a SIGKILL in the middle of a call: {}; keep no state that a dead process leaves locked", outcome.text));
  }
  return handed_on(outcome);
}

constexpr const char* kNoEscape =
    "; a worker starts no program, forks nothing, writes no file and reads only what settings of format path or socket "
    "name";

std::string settings_schema_apart(const Subject& subject) {
  return handed_on(run_apart(seconds(20), [&] { return Provider::load(subject).loaded().settings_schema; }));
}

/// This process is held from now on as a worker is; nothing of the provider was loaded yet.
void enter_jail(const Subject& subject) {
  if (const Status rights = ipc::check_file_rights(subject.file); !rights)
    throw NotMade(rights.error().message);  // its place is no fault of the provider
  const auto paths = host::jail_paths(settings_schema_apart(subject), subject.settings_json);
  worker::JailSpec spec;
  spec.read_paths = paths.read;
  spec.read_paths.push_back(std::filesystem::canonical(subject.file).string());  // here it is loaded by its path
  spec.unix_sockets = paths.unix_sockets;
  const auto held = worker::lock_process(spec);
  if (!held) throw NotMade("the worker's jail cannot be entered here: " + held.error().message);
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
    expect_quiet_apart(subject);
    if (++differed > kKills / 2) throw Broken("after kills a new process lists something else: " + found);
    (void)list_apart(subject, kept);  // the system may have changed; it does not after most kills
  }
}

void inside_jail(const Subject& subject) {
  if (worker::jail::landlock_version() == 0 && !worker::jail::has_seccomp()) {
    throw NotMade("this kernel has neither landlock nor seccomp filters: " + worker::kernel_jail());
  }
  KeptListing kept;
  (void)list_apart(subject, kept);
  const std::string found = handed_on(run_apart(seconds(100), [&] {
    enter_jail(subject);
    auto [said, instance] = Instance::open(subject, subject.settings_json, subject.secrets);
    if (instance == nullptr) throw Broken("open answered inside the worker's jail: " + said.why());
    const Said listed = instance->refresh();
    if (listed.status != DRIFTD_OK)
      throw Broken("refresh answered inside the worker's jail: " + listed.why() + kNoEscape);
    (void)instance->health();
    return difference(instance->provider(), kept.read(), listing_of(listed));
  }));
  if (found.empty()) return;
  expect_quiet_apart(subject);
  throw Broken("inside the worker's jail it lists something else: " + found + kNoEscape);
}

}  // namespace driftd::check
