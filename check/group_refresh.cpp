// SPDX-License-Identifier: Apache-2.0
// Group refresh, part 1: the listing itself. Part 2 is group_refresh_read.cpp.
#include <fmt/format.h>

#include <algorithm>

#include "check/group_refresh.hpp"
#include "check/listing.hpp"

namespace driftd::check {
namespace {

void works(const Subject& subject) {
  const Instance instance(subject);
  const CallTrace trace = instance.refresh();
  if (trace.status == DRIFTD_OK) return;
  const bool cut = trace.status == DRIFTD_CANCELLED || trace.status == DRIFTD_DEADLINE;
  if (cut && trace.marks.empty() && !trace.records.empty()) {
    throw RuleBroken(
        fmt::format("a refresh emitted {} records until its deadline and neither finished nor set a CHECKPOINT to "
                    "go on from: it would start over forever",
                    trace.records.size()));
  }
  if (trace.diagnostics.empty()) {
    throw RuleBroken(fmt::format(
        "refresh answered {}; push a diagnostic that says what, expected, found and the next step", trace.why()));
  }
}

void same_twice(const Subject& subject) {
  const Instance instance(subject);
  Listing before = listing_of(list(instance));
  std::string found;
  for (int i = 0; i < 5; ++i) {  // the system itself may change once, but not every time
    Listing after = listing_of(list(instance, {{}, {}, {}, true}));
    found = difference(instance.provider(), before, after);
    if (found.empty()) return;
    before = std::move(after);
  }
  throw RuleBroken(
      fmt::format("two refreshes never agree: {}; what changes by itself belongs into `status`, or is declared "
                  "volatile in the schema",
                  found));
}

/// Returns true if a diagnostic before the mark says that the kind is incomplete.
bool failed_before(const CallTrace& trace, const Mark& mark) {
  const auto end = trace.diagnostics.begin() + static_cast<std::ptrdiff_t>(mark.diagnostics_before);
  return std::any_of(trace.diagnostics.begin(), end, [&](const Diagnostic& d) {
    const bool whole_kind = d.id.empty() && d.path.empty() && d.code != Code::ok;
    return whole_kind && d.kind == mark.kind && d.backend == mark.backend;
  });
}

void complete_count(const Subject& subject) {
  const Instance instance(subject);
  const CallTrace trace = list(instance);
  std::set<std::pair<std::string, std::string>> completed;
  for (const auto& mark : trace.marks) {
    if (mark.type != DRIFTD_MARK_COMPLETE) continue;
    const auto of = std::pair(mark.kind, mark.backend);
    if (!completed.insert(of).second)
      throw RuleBroken(fmt::format("COMPLETE of kind `{}` came twice in one run", mark.kind));
    if (failed_before(trace, mark)) {
      throw RuleBroken(
          fmt::format("COMPLETE of kind `{}` after a diagnostic that calls the kind incomplete", mark.kind));
    }
    const auto later =
        std::any_of(trace.records.begin() + static_cast<std::ptrdiff_t>(mark.records_before), trace.records.end(),
                    [&](const Record& r) { return std::pair(r.id.kind, r.backend) == of; });
    if (later) throw RuleBroken(fmt::format("a record of kind `{}` came after its COMPLETE", mark.kind));
    const auto counts = trace.counts();
    const std::uint64_t emitted = counts.contains(of) ? counts.at(of) : 0;
    if (mark.count != emitted) {
      throw RuleBroken(
          fmt::format("COMPLETE of kind `{}` says {}, but {} were emitted", mark.kind, mark.count, emitted));
    }
  }
  CallFaults denied;
  denied.deny_secrets = true;
  expect_true_completes(instance, listing_of(trace), instance.refresh({}, denied), "without its secrets");
  Host::get().expect_no_violation("refresh.complete_count");
}

void unique_ids(const Subject& subject) {
  const Instance instance(subject);
  std::set<Identity> seen;
  for (const auto& record : list(instance).records) {
    if (!seen.insert(identity_of(record)).second) {
      throw RuleBroken(
          fmt::format("{} was emitted twice in one run; which of the two is true?", render(identity_of(record))));
    }
  }
}

void finish_soon(const Subject& subject) {
  const Instance instance(subject);
  const CallTrace whole = list(instance);
  const auto n = whole.records.size();
  if (n == 0) throw CheckNotMade("nothing is listed; give settings with at least one resource");
  for (const std::size_t at : {std::size_t{1}, (n + 1) / 2, n}) {
    CallFaults faults;
    faults.finish_soon_at = at;
    const CallTrace trace = instance.refresh({}, faults);
    expect_true_completes(instance, listing_of(whole), trace, fmt::format("FINISH_SOON at record {}", at));
  }
  (void)list(instance);
}

void resume_from(const Instance& instance, const CallTrace& whole, const Mark& mark) {
  const CallTrace rest = instance.refresh({mark.cursor, {}, {}});
  if (rest.status == DRIFTD_CURSOR_EXPIRED) return;
  if (rest.status != DRIFTD_OK) throw CheckNotMade(fmt::format("refresh from a checkpoint answered {}", rest.why()));
  Listing before;
  add(before, whole.records, 0, mark.records_before);
  Listing all = before;
  add(all, rest.records);
  const std::string when = fmt::format("resumed behind record {} of {}", mark.records_before, whole.records.size());
  if (auto found = difference(instance.provider(), listing_of(whole), all); !found.empty()) {
    const Listing now = listing_of(list(instance));  // the system itself may have changed
    found = difference(instance.provider(), now, all);
    if (!found.empty()) throw RuleBroken(fmt::format("{}, it is not the whole: {}", when, found));
  }
  // a list that starts again counts from zero
  const bool from_start = difference(instance.provider(), listing_of(whole), listing_of(rest)).empty();
  expect_true_completes(instance, listing_of(whole), rest, when, from_start ? Listing{} : before);
}

void resume(const Subject& subject) {
  auto random = random_of(subject, "refresh.resume");
  const Instance instance(subject);
  const CallTrace whole = list(instance, {{}, {}, {}, true});
  std::vector<Mark> marks;
  for (const auto& mark : whole.marks) {
    if (mark.type == DRIFTD_MARK_CHECKPOINT && !mark.cursor.empty()) marks.push_back(mark);
  }
  if (marks.empty()) throw CheckNotApplicable("sets no checkpoint with a cursor: a refresh always starts over");
  for (const auto at : spread(random, marks.size(), 40)) resume_from(instance, whole, marks[at - 1]);
  const Instance restarted(subject);
  for (const auto at : spread(random, marks.size(), 5)) resume_from(restarted, whole, marks[at - 1]);
}

std::vector<std::string> garbage_cursors(const Subject& subject, const CallTrace& whole) {
  auto random = random_of(subject, "refresh.garbage_cursor");
  std::vector<std::string> out{random_word(random, 12),         random_bytes(random, 16),
                               random_bytes(random, 64u << 10), R"({"v":1,"after":"thing/1"})",
                               std::string("\0\0\0\0", 4),      "-1",
                               "18446744073709551616"};
  for (const auto& mark : whole.marks) {
    if (mark.type != DRIFTD_MARK_CHECKPOINT || mark.cursor.size() < 2) continue;
    out.push_back(mark.cursor.substr(0, mark.cursor.size() / 2));
    out.push_back(mark.cursor + random_word(random, 3));
    std::string flipped = mark.cursor;
    flipped[below(random, flipped.size())] ^= 0x55;
    out.push_back(flipped);
    break;
  }
  return out;
}

void garbage_cursor(const Subject& subject) {
  const Instance instance(subject);
  const CallTrace whole = list(instance);
  for (const auto& cursor : garbage_cursors(subject, whole)) {
    const CallTrace trace = instance.refresh({cursor, {}, {}});
    const std::string name = fmt::format("a cursor of {} bytes that is not one of its own ({})", cursor.size(),
                                         to_hex(cursor.substr(0, 12)));
    if (trace.status != DRIFTD_OK) {
      if (trace.diagnostics.empty()) throw RuleBroken(fmt::format("{}: {}", name, trace.why()));
      continue;
    }
    if (trace.unchanged)
      throw RuleBroken(name + " was answered with `unchanged`; answer CURSOR_EXPIRED or list everything");
    const auto found = difference(instance.provider(), listing_of(whole), listing_of(trace));
    const Listing now = found.empty() ? Listing{} : listing_of(list(instance));
    if (!found.empty() && !difference(instance.provider(), now, listing_of(trace)).empty()) {
      throw RuleBroken(
          fmt::format("{} was taken, and the list is not the whole one: {}; answer CURSOR_EXPIRED (a check sum "
                      "in the cursor tells) or list everything",
                      name, found));
    }
  }
}

void cursor_size(const Subject& subject) {
  const Instance instance(subject);
  (void)list(instance);
  Host::get().expect_no_violation("refresh.cursor_size");
}

void kinds(const Subject& subject) {
  const Instance instance(subject);
  auto wanted = instance.provider().info().kinds;
  (void)list(instance);
  wanted.push_back("no-such-kind");
  for (const auto& kind : wanted) {
    const CallTrace trace = instance.refresh({{}, {kind}, {}, true});
    for (const auto& record : trace.records) {
      if (record.id.kind != kind) {
        throw RuleBroken(fmt::format("asked for kind `{}` only, it emitted {}", kind, render(identity_of(record))));
      }
    }
    for (const auto& [of, count] : trace.complete()) {
      if (of.first != kind)
        throw RuleBroken(fmt::format("asked for kind `{}` only, it marked `{}` COMPLETE", kind, of.first));
    }
  }
}

void unchanged(const Subject& subject) {
  const Instance instance(subject);
  const auto judge = [](const CallTrace& trace, bool allowed, const char* when) {
    if (!trace.unchanged) return;
    if (!allowed) throw RuleBroken(fmt::format("`unchanged` was answered {}", when));
    if (!trace.records.empty() || !trace.complete().empty()) {
      throw RuleBroken(fmt::format("`unchanged` was answered {} although {} records and {} COMPLETE were pushed", when,
                                   trace.records.size(), trace.complete().size()));
    }
  };
  const CallTrace first = instance.refresh();
  judge(first, false, "without a cursor");
  judge(instance.refresh(), false, "without a cursor, the second time");
  for (const auto& mark : first.marks) {
    if (mark.type != DRIFTD_MARK_CHECKPOINT || mark.cursor.empty()) continue;
    judge(instance.refresh({mark.cursor, {}, {}}), true, "for its own cursor");
    judge(instance.refresh({mark.cursor, {}, {}, true}), false, "in spite of DRIFTD_REFRESH_FULL");
  }
}

using std::chrono::seconds;
constexpr Check kRefreshChecks[] = {
    {"refresh.works", Level::must, "a refresh returns, and is OK or says why not", seconds(100), &works},
    {"refresh.same_twice", Level::must, "twice on a quiet system: the same identities and bodies", seconds(120),
     &same_twice},
    {"refresh.complete_count", Level::must,
     "one COMPLETE for each kind that was listed whole, with the true count, none after an error", seconds(120),
     &complete_count},
    {"refresh.unique_ids", Level::must, "no identity twice in one run", seconds(100), &unique_ids},
    {"refresh.finish_soon", Level::must,
     "FINISH_SOON at the first, a middle and the last record: returns soon, COMPLETE only for what is whole",
     seconds(120), &finish_soon},
    {"refresh.resume", Level::must, "from each checkpoint on: together with what came before it, the whole",
     seconds(180), &resume},
    {"refresh.garbage_cursor", Level::must,
     "a foreign, cut or random cursor: CURSOR_EXPIRED, INVALID or the whole list, never silence", seconds(180),
     &garbage_cursor},
    {"refresh.cursor_size", Level::must, "cursors of at most 64 KiB", seconds(100), &cursor_size},
    {"refresh.kinds", Level::must, "only the kinds asked for", seconds(180), &kinds},
    {"refresh.unchanged", Level::must, "`unchanged` only for a cursor that was given, and with nothing emitted",
     seconds(120), &unchanged},
    {"refresh.read_equals", Level::must, "a read of a listed identity gives the listed body", seconds(180),
     &read_equals},
    {"refresh.unknown_identity", Level::must,
     "a read of an identity that is not there: a NOT_FOUND with its kind and id, and the others settled", seconds(100),
     &unknown_identity},
    {"refresh.observed", Level::should, "records carry the host's time of the request", seconds(100), &observed},
    {"refresh.diff", Level::must, "verdicts name a change that was asked about, and a reason", seconds(100), &diff},
    {"refresh.watch_quiet", Level::must, "a watch on a quiet system does not spin", seconds(100), &watch_quiet},
    {"refresh.discover", Level::must, "driftd.discover/1 pushes whole, unique backends", seconds(120), &discover},
    {"refresh.apply", Level::must,
     "driftd.apply/1: a dry run changes nothing; one key, one change; what moved is CONFLICT; all or none; no secret",
     seconds(120), &apply},
};

}  // namespace

std::span<const Check> refresh_checks() { return kRefreshChecks; }

}  // namespace driftd::check
