// SPDX-License-Identifier: Apache-2.0
// Group memory: who owns which memory, and whether it is freed.
#include <fmt/format.h>

#include "check/process_state.hpp"
#include "check/progress.hpp"
#include "check/scarcity.hpp"
#include "check/sink/groups.hpp"
#include "check/sink/host_table.hpp"
#include "check/sink/stand.hpp"

namespace driftd::check::sink {
namespace {

using namespace std::chrono_literals;

/// Expects an instance with this input layout to deliver as a plain one does, call after call.
void expect_delivers_in(const Subject& subject, const char* id, InputLayout layout, const std::string& when,
                        const CallFaults& faults = {}) {
  Stand stand(subject, id);
  stand.expect_works_at_all();
  auto [trace, odd] =
      SinkInstance::open(stand.subject(), {stand.subject().settings_json, subject.secrets}, faults, {layout, false});
  if (odd == nullptr) throw RuleBroken(fmt::format("{}: expected open to answer OK, found {}", when, trace.why()));
  stand.expect_delivers(*odd, when, 5, faults);
  (void)odd->probe();
  if (odd->has_flush()) (void)odd->flush();
  stand.expect_delivers(*odd, when, 1, faults);
}

void inputs_borrowed(const Subject& subject) {
  set_progress_note("each input is overwritten with 0xDD when its call has returned: copy what is needed later");
  expect_delivers_in(
      subject, "memory.inputs_borrowed", {.poison = true},
      "after the inputs of earlier calls were overwritten (they are borrowed for the call: copy what you keep)");
}

void inputs_untouched(const Subject& subject) {
  set_progress_note("inputs lie in read-only pages: never write to them or free them");
  expect_delivers_in(subject, "memory.inputs_untouched", {.read_only = true}, "inputs in read-only pages");
}

void page_end(const Subject& subject) {
  set_progress_note("each text ends at a page end, without NUL: use its length, never strlen or %s");
  CallFaults faults;
  faults.deliver_secret = [](const std::string& bytes, driftd_use_fn use, void* user) {
    Inputs inputs({.guard_texts = true});
    const driftd_str text = inputs.text(bytes);
    use(user, reinterpret_cast<const std::uint8_t*>(text.data), text.len);
  };
  expect_delivers_in(subject, "memory.page_end", {.guard_texts = true}, "texts that end at a page end", faults);
  Inputs inputs({.guard_texts = true});
  const driftd_str name = inputs.text("settings");
  (void)SinkPlugin::load(subject).table.schema(
      name, [](void*, driftd_str) {}, nullptr);
}

void open_close(const Subject& subject) {
  raise_descriptors();
  Stand stand(subject, "memory.open_close", Stand::Answers::as_given, false);
  const Batch batch = stand.events().batch(1);
  expect_flat("open, deliver and close", 60, 200, [&] {
    const auto instance = SinkInstance::open_plain(stand.subject(), {{}, false});
    (void)instance->deliver(batch);
    instance->close();
  });
}

void deliver_flat(const Subject& subject) {
  raise_descriptors();
  Stand stand(subject, "memory.deliver_flat", Stand::Answers::as_given, false);
  const auto instance = SinkInstance::open_plain(stand.subject(), {{}, false});
  const Batch batch = stand.events().full_batch(16);
  int times = 0;
  expect_flat("deliver", 50, 200, [&] {
    const CallTrace trace = instance->deliver(batch);
    ++times;
    if (all_delivered(trace, batch.size())) return;
    throw RuleBroken(fmt::format(
        "batch {} of one instance: expected all delivered as before, found {}; give back after each call what it took "
        "(descriptors, connections, threads)",
        times, describe_failure(trace, batch.size())));
  });
}

void failed_open(const Subject& subject) {
  Stand stand(subject, "memory.failed_open");
  const std::string given = stand.subject().settings_json;
  CallFaults cancelled, late;
  cancelled.cancel_at = 0;
  late.time = -1s;
  int failed = 0;
  for (const auto& [what, settings, faults] : std::initializer_list<std::tuple<const char*, std::string, CallFaults>>{
           {"settings {}", "{}", {}},
           {"settings []", "[]", {}},
           {"settings that are no JSON", "{\"", {}},
           {"settings of another shape", R"({"address":{"deep":[1,2,3]},"no-such-setting":7})", {}},
           {"the call cancelled", given, cancelled},
           {"the deadline passed", given, late}}) {
    set_progress_note(fmt::format("open with {}", what));
    const auto [trace, instance] = SinkInstance::open(stand.subject(), {settings, subject.secrets}, faults);
    failed += instance == nullptr ? 1 : 0;
    if (trace.threw) throw RuleBroken(fmt::format("open with {}: an exception crossed the border", what));
  }
  Host::get().expect_no_violation("memory.failed_open");
  if (failed == 0) throw CheckNotApplicable("open accepted everything that was tried");
}

const driftd_sink_host_table* sheltered_table() {
  using T = driftd_sink_host_table;
  static constexpr T kTable = {sizeof(T),
                               DRIFTD_SINK_ABI_MINOR,
                               &Sheltered<&own_sink_host_table, &T::now>::call,
                               &Sheltered<&own_sink_host_table, &T::log>::call,
                               &Sheltered<&own_sink_host_table, &T::cancelled>::call,
                               &Sheltered<&own_sink_host_table, &T::deadline>::call,
                               &Sheltered<&own_sink_host_table, &T::cancel_fd>::call,
                               &Sheltered<&own_sink_host_table, &T::settle>::call,
                               &Sheltered<&own_sink_host_table, &T::diag>::call,
                               &Sheltered<&own_sink_host_table, &T::secret>::call,
                               &Sheltered<&own_sink_host_table, &T::query>::call};
  return &kTable;
}

/// Calls open, deliver and close with the `number`-th allocation failing. Returns how many allocations there were.
std::uint64_t try_with(Stand& stand, std::uint64_t number, bool spare_open) {
  set_progress_note(fmt::format("allocation {} failed: check what malloc answers", number));
  const CallMode mode{{.fail_allocation = number, .spare_open = spare_open}, false};
  CallFaults brief;
  brief.time = 2s;
  auto [opened, instance] =
      SinkInstance::open(stand.subject(), {stand.subject().settings_json, stand.subject().secrets}, {}, mode);
  std::uint64_t count = FailingAllocation::counted();
  bool threw = opened.threw;
  if (instance != nullptr) {
    threw |= instance->deliver(stand.events().full_batch(4), brief).threw;
    count = std::max(count, FailingAllocation::counted());
  }
  if (threw)
    throw RuleBroken(fmt::format("allocation {} failed: an exception crossed the border; expected a status", number));
  return count;
}

void failing_allocations(const Subject& subject) {
  if (!owns_malloc()) throw CheckNotMade("this build of driftd-check has a sanitizer's malloc");
  set_sink_host_table(sheltered_table());
  Stand stand(subject, "memory.failing_allocations");
  stand.expect_works_at_all();
  const auto until = mono_ns() + 30'000'000'000;
  for (const std::uint64_t number : allocation_numbers(try_with(stand, ~0ULL, false))) {
    for (const bool spare_open : {false, true}) {  // an open that fails never reaches the deliver
      if (mono_ns() < until) (void)try_with(stand, number, spare_open);
    }
  }
}

constexpr Check kMemoryChecks[] = {
    {"memory.inputs_borrowed", Level::must, "inputs that are overwritten after the call change nothing later", 100s,
     &inputs_borrowed},
    {"memory.inputs_untouched", Level::must, "inputs lie in read-only pages: not written, not freed", 100s,
     &inputs_untouched},
    {"memory.page_end", Level::must, "text is read by its length: it ends at a page end, without NUL", 100s, &page_end},
    {"memory.open_close", Level::must, "660 times open, deliver and close: memory, descriptors and threads stay flat",
     240s, &open_close},
    {"memory.deliver_flat", Level::must, "650 batches: memory, descriptors and threads stay flat", 240s, &deliver_flat},
    {"memory.failed_open", Level::must, "an open that fails leaves `out` untouched and answers a status", 100s,
     &failed_open},
    {"memory.failing_allocations", Level::should, "a malloc that fails becomes an error, not a crash", 120s,
     &failing_allocations},
};

}  // namespace

std::span<const Check> memory_checks() { return kMemoryChecks; }

}  // namespace driftd::check::sink
