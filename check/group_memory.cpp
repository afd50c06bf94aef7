// SPDX-License-Identifier: Apache-2.0
// Group memory: who owns which memory, and whether it is freed.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "check/alloc.hpp"
#include "check/process_state.hpp"
#include "check/progress.hpp"
#include "check/raw_instance.hpp"
#include "check/scarcity.hpp"

namespace driftd::check {
namespace {

using namespace std::chrono_literals;

std::vector<Identity> some_of(const Listing& listing) {
  std::vector<Identity> out;
  for (const auto& [identity, record] : listing) {
    if (out.size() < 3) out.push_back(identity);
  }
  return out;
}

/// Expects an instance with this input layout to give the same results as a plain one, call after call.
void expect_same_session(const Subject& subject, InputLayout layout, const std::string& when) {
  RawInstance plain(subject, {});
  plain.open();
  const Listing expected = plain_listing(plain);
  plain.close();
  RawInstance odd(subject, layout);
  odd.open();
  Host::get().clear_violations();
  for (int i = 0; i < 3; ++i) {
    expect_same(odd.provider(), expected, odd.refresh(), when);
    (void)odd.refresh(CallArguments{{}, odd.provider().info().kinds, {}, true});
    (void)odd.refresh(CallArguments{"a cursor that nobody made", {}, {}, false});
    (void)odd.read(some_of(expected));
    (void)odd.diff(expected.empty() ? Identity{} : expected.begin()->first);
    (void)odd.health();
    for (const auto& kind : odd.provider().info().kinds) (void)odd.schema(kind);
  }
  expect_same(odd.provider(), expected, odd.refresh(), when);
  Host::get().expect_no_violation("secrets.own_tokens");
}

void inputs_borrowed(const Subject& subject) {
  set_progress_note("each input is overwritten with 0xDD when its call has returned: copy what is needed later");
  expect_same_session(
      subject, {.poison = true},
      "after the inputs of earlier calls were overwritten (they are borrowed for the call: copy what you keep)");
}

void inputs_untouched(const Subject& subject) {
  set_progress_note("inputs lie in read-only pages: never write to them or free them");
  expect_same_session(subject, {.read_only = true}, "inputs in read-only pages");
}

void page_end(const Subject& subject) {
  set_progress_note("each text ends at a page end, without NUL: use its length, never strlen or %s");
  RawInstance plain(subject, {});
  plain.open();
  const Listing expected = plain_listing(plain);
  RawInstance odd(subject, {.guard_texts = true});
  odd.open();
  CallFaults faults;
  faults.deliver_secret = [](const std::string& bytes, driftd_use_fn use, void* user) {
    Inputs inputs({.guard_texts = true});
    const driftd_str text = inputs.text(bytes);
    use(user, reinterpret_cast<const std::uint8_t*>(text.data), text.len);
  };
  expect_same(odd.provider(), expected, odd.refresh({}, faults), "texts that end at a page end");
  for (const auto& mark : odd.refresh().marks) {
    if (mark.type == DRIFTD_MARK_CHECKPOINT)
      (void)odd.refresh(CallArguments{mark.cursor, odd.provider().info().kinds, {}, false}, faults);
  }
  (void)odd.read(some_of(expected), faults);
  (void)odd.diff(expected.empty() ? Identity{} : expected.begin()->first);
  for (const auto& kind : odd.provider().info().kinds) (void)odd.schema(kind);
  (void)odd.schema("settings");
  (void)odd.query("driftd.watch", 1);
}

void open_close(const Subject& subject) {
  raise_descriptors();
  RawInstance instance(subject, {});
  expect_flat("open and close", 100, 300, [&] {
    instance.open();
    instance.close();
  });
}

void refresh_flat(const Subject& subject) {
  raise_descriptors();
  RawInstance instance(subject, {});
  instance.open();
  (void)plain_listing(instance);
  int times = 0;
  expect_flat("refresh", 20, 60, [&] {
    const CallTrace trace = instance.refresh();
    ++times;
    if (trace.status == DRIFTD_OK && !trace.threw) return;
    throw RuleBroken(
        fmt::format("refresh {} of one instance: expected OK as before, found {}; give back after each call what "
                    "it took (descriptors, connections, threads)",
                    times, trace.why()));
  });
}

struct WrongOpen {
  std::string what, settings;
  CallFaults faults;
};

std::vector<WrongOpen> wrong_opens(const Subject& subject) {
  CallFaults denied, cancelled, late;
  denied.deny_secrets = true;
  cancelled.cancel_at = 0;
  late.time = -1s;
  std::vector<WrongOpen> out{{"settings {}", "{}", {}},
                             {"settings []", "[]", {}},
                             {"empty settings", "", {}},
                             {"settings that are no JSON", "{\"", {}}};
  if (subject.settings_json.empty()) return out;
  out.push_back({"its secrets denied", subject.settings_json, denied});
  out.push_back({"the call cancelled", subject.settings_json, cancelled});
  out.push_back({"the deadline passed", subject.settings_json, late});
  return out;
}

void failed_open(const Subject& subject) {
  int failed = 0;
  for (const auto& wrong : wrong_opens(subject)) {
    RawInstance instance(subject, {});
    const CallTrace trace = instance.open(wrong.settings, wrong.faults);
    set_progress("open with " + wrong.what);
    if (trace.threw)
      throw RuleBroken(fmt::format("open with {}: an exception crossed the border; expected a status", wrong.what));
    if (trace.status == DRIFTD_OK) continue;
    ++failed;
    if (trace.status < DRIFTD_OK || trace.status > DRIFTD_INTERNAL) {
      throw RuleBroken(
          fmt::format("open with {}: expected a status of provider.h, found {}", wrong.what, trace.status));
    }
    if (instance.written_behind() > 0) {
      throw RuleBroken(
          fmt::format("open with {}: expected `out` untouched, since it answered {}, found it written; assign it last",
                      wrong.what, trace.why()));
    }
  }
  if (failed == 0) throw CheckNotApplicable("open accepted everything that was tried");
}

const driftd_host_table* sheltered_table() {
  using T = driftd_host_table;
  static constexpr T kTable = {sizeof(T),
                               DRIFTD_ABI_MINOR,
                               &Sheltered<&Host::own_table, &T::now>::call,
                               &Sheltered<&Host::own_table, &T::log>::call,
                               &Sheltered<&Host::own_table, &T::metric>::call,
                               &Sheltered<&Host::own_table, &T::cancelled>::call,
                               &Sheltered<&Host::own_table, &T::deadline>::call,
                               &Sheltered<&Host::own_table, &T::cancel_fd>::call,
                               &Sheltered<&Host::own_table, &T::emit>::call,
                               &Sheltered<&Host::own_table, &T::mark>::call,
                               &Sheltered<&Host::own_table, &T::diag>::call,
                               &Sheltered<&Host::own_table, &T::permit>::call,
                               &Sheltered<&Host::own_table, &T::secret>::call,
                               &Sheltered<&Host::own_table, &T::query>::call};
  return &kTable;
}

/// Calls open, refresh and close with the `number`-th allocation failing. Returns how many allocations there were.
std::uint64_t try_with(const Subject& subject, std::uint64_t number, bool spare_open) {
  set_progress_note(fmt::format("allocation {} failed: check what malloc answers", number));
  RawInstance instance(subject, {.fail_allocation = number, .spare_open = spare_open});
  const CallTrace opened = instance.open(subject.settings_json.empty() ? "{}" : subject.settings_json);
  std::uint64_t count = FailingAllocation::counted();
  if (opened.status != DRIFTD_OK) return count;
  const CallTrace trace = instance.refresh();
  count = std::max(count, FailingAllocation::counted());
  if (opened.threw || trace.threw)
    throw RuleBroken(fmt::format("allocation {} failed: an exception crossed the border; expected a status", number));
  return count;
}

void failing_allocations(const Subject& subject) {
  if (!owns_malloc()) throw CheckNotMade("this build of driftd-check has a sanitizer's malloc");
  Host::get().set_table(sheltered_table());
  RawInstance plain(subject, {});
  plain.open();
  (void)plain_listing(plain);
  plain.close();
  const auto until = mono_ns() + 30'000'000'000;
  for (const std::uint64_t number : allocation_numbers(try_with(subject, ~0ULL, false))) {
    for (const bool spare_open : {false, true}) {  // an open that fails never reaches the refresh
      if (mono_ns() < until) (void)try_with(subject, number, spare_open);
    }
  }
}

constexpr Check kMemoryChecks[] = {
    {"memory.inputs_borrowed", Level::must, "inputs that are overwritten after the call change nothing later", 100s,
     &inputs_borrowed},
    {"memory.inputs_untouched", Level::must, "inputs lie in read-only pages: not written, not freed", 100s,
     &inputs_untouched},
    {"memory.page_end", Level::must, "text is read by its length: it ends at a page end, without NUL", 100s, &page_end},
    {"memory.open_close", Level::must, "1,000 open/close: memory, descriptors and threads stay flat", 240s,
     &open_close},
    {"memory.refresh_flat", Level::must, "200 refreshes: memory, descriptors and threads stay flat", 240s,
     &refresh_flat},
    {"memory.failed_open", Level::must, "an open that fails leaves `out` untouched and answers a status", 100s,
     &failed_open},
    {"memory.failing_allocations", Level::should, "a malloc that fails becomes an error, not a crash", 120s,
     &failing_allocations},
};

}  // namespace

std::span<const Check> memory_checks() { return kMemoryChecks; }

}  // namespace driftd::check
