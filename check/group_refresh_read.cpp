// SPDX-License-Identifier: Apache-2.0
// Group refresh, part 2: read, diff, the records' times, a quiet watch.
#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>

#include "check/group_refresh.hpp"
#include "check/listing.hpp"
#include "core/value/path.hpp"
#include "core/value/value.hpp"

namespace driftd::check {
namespace {

/// Returns up to `count` listed identities. The same seed gives the same ones.
std::vector<Identity> some_of(std::mt19937_64& random, const Listing& listing, std::size_t count) {
  std::vector<Identity> all, out;
  for (const auto& [identity, record] : listing) all.push_back(identity);
  for (const auto at : spread(random, all.size(), count)) out.push_back(all[at - 1]);
  return out;
}

bool reported_gone(const CallTrace& trace, const Identity& identity) {
  return std::any_of(trace.diagnostics.begin(), trace.diagnostics.end(), [&](const Diagnostic& d) {
    return d.code == Code::not_found && core::ResourceId{d.kind, d.id} == identity.id && d.backend == identity.backend;
  });
}

bool reported_failed(const CallTrace& trace, const Identity& identity) {
  return std::any_of(trace.diagnostics.begin(), trace.diagnostics.end(), [&](const Diagnostic& d) {
    return d.code != Code::not_found && d.kind == identity.id.kind && d.id == identity.id.id;
  });
}

/// Compares a read of `asked` with the listing and describes the first mistake. Empty if there is none.
std::string check_read(const Provider& provider, const Listing& listed, const CallTrace& trace,
                       const std::vector<Identity>& asked) {
  const Listing got = listing_of(trace);
  for (const auto& [identity, record] : got) {
    if (std::find(asked.begin(), asked.end(), identity) == asked.end()) {
      return render(identity) + " was emitted by a read that did not ask for it";
    }
  }
  for (const auto& identity : asked) {
    const auto found = got.find(identity);
    const bool there = listed.contains(identity);
    if (!there || found == got.end()) {
      if (there && reported_gone(trace, identity)) return render(identity) + " is listed, but a read says NOT_FOUND";
      if (found == got.end() && !reported_gone(trace, identity) && !reported_failed(trace, identity)) {
        return render(identity) +
               " was asked for and is settled neither by a record nor by a diagnostic with its kind and id";
      }
      continue;
    }
    const auto different = difference(provider, listed.at(identity), found->second);
    if (!different.empty()) return "a read differs from the listing: " + different;
  }
  return {};
}

CallTrace read_ok(const Instance& instance, const std::vector<Identity>& ids) {
  CallTrace trace = instance.read(ids);
  if (trace.status == DRIFTD_UNSUPPORTED) {
    throw RuleBroken(fmt::format("read answered {}; without read no deletion is ever confirmed", trace.why()));
  }
  if (trace.status != DRIFTD_OK)
    throw RuleBroken(fmt::format("read of {} identities answered {}", ids.size(), trace.why()));
  return trace;
}

/// Collects path and text of a body's first scalars.
void scalars(const core::Value& value, const core::Path& at, std::vector<std::pair<std::string, std::string>>& out) {
  if (out.size() >= 5) return;
  if (const auto* object = value.object()) {
    for (const auto& [key, member] : *object) scalars(member, at.child(key), out);
  } else if (value.array() == nullptr && !at.empty()) {
    out.emplace_back(at.render(), core::render(value));
  }
}

struct Changes {
  std::vector<std::array<std::string, 3>> texts;
  CallTrace ask(const Instance& instance, const core::ResourceId& id) const {
    const auto str = [](const std::string& s) { return driftd_str{s.data(), s.size()}; };
    std::vector<driftd_change> changes;
    for (const auto& [path, old_value, new_value] : texts) {
      changes.push_back({sizeof(driftd_change), static_cast<std::uint32_t>(changes.size()), str(path), str(old_value),
                         str(new_value)});
    }
    const driftd_diff_args args{sizeof args,
                                sizeof(driftd_change),
                                str(id.kind),
                                str(id.id),
                                changes.data(),
                                static_cast<std::uint32_t>(changes.size()),
                                0};
    return instance.diff(args);
  }
};

void check_verdicts(const CallTrace& trace, std::size_t changes, const std::string& name) {
  std::set<std::uint32_t> seen;
  if (trace.status != DRIFTD_OK && !trace.verdicts.empty()) {
    throw RuleBroken(
        fmt::format("{}: diff pushed {} verdicts and answered {}", name, trace.verdicts.size(), trace.why()));
  }
  for (const auto& v : trace.verdicts) {
    if (v.index >= changes) throw RuleBroken(fmt::format("{}: a verdict for change {} of {}", name, v.index, changes));
    if (!seen.insert(v.index).second) throw RuleBroken(fmt::format("{}: two verdicts for change {}", name, v.index));
    if (v.verdict != DRIFTD_VERDICT_EQUIVALENT && v.verdict != DRIFTD_VERDICT_UNSETTLED) {
      throw RuleBroken(fmt::format("{}: verdict {} is unknown", name, v.verdict));
    }
    if (v.reason.empty()) throw RuleBroken(name + ": a verdict without a reason; `driftd explain` shows it");
  }
}

void ask_twice(const Instance& instance, const core::ResourceId& id, const Changes& changes, const std::string& name) {
  const CallTrace first = changes.ask(instance, id), second = changes.ask(instance, id);
  check_verdicts(first, changes.texts.size(), name);
  check_verdicts(second, changes.texts.size(), name);
  const auto same = [](const Verdict& a, const Verdict& b) { return a.index == b.index && a.verdict == b.verdict; };
  if (!std::equal(first.verdicts.begin(), first.verdicts.end(), second.verdicts.begin(), second.verdicts.end(), same)) {
    throw RuleBroken(name + ": the same question got two answers; diff is [pure]");
  }
}

void diff_record(const Instance& instance, const Record& record) {
  const auto body = core::parse(record.body);
  if (!body) return;
  std::vector<std::pair<std::string, std::string>> found;
  scalars(*body, {}, found);
  Changes real, gone, junk;
  for (const auto& [path, text] : found) {
    real.texts.push_back({path, text, text == "\"changed\"" ? "\"other\"" : "\"changed\""});
    gone.texts.push_back({path, text, ""});
  }
  junk.texts = {{"no.such[9999].path", "{", "\xff"}, {"", "", ""}, {"[[[", "1e999", "nul"}};
  const std::string name = render(identity_of(record));
  ask_twice(instance, record.id, real, name);
  ask_twice(instance, record.id, gone, name + ", removed attributes");
  ask_twice(instance, record.id, junk, name + ", values that are no JSON");
  ask_twice(instance, record.id, {}, name + ", no change at all");
}

std::int64_t cpu_ms() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto ms = [](const timeval& t) { return t.tv_sec * 1000 + t.tv_usec / 1000; };
  return ms(usage.ru_utime) + ms(usage.ru_stime);
}

}  // namespace

void read_equals(const Subject& subject) {
  auto random = random_of(subject, "refresh.read_equals");
  const Instance instance(subject);
  std::string wrong;
  for (int i = 0; i < 4; ++i) {  // the system may change between the listing and the read, but not every time
    const Listing listed = listing_of(list(instance));
    if (listed.empty()) throw CheckNotMade("nothing is listed; give settings with at least one resource");
    const auto asked = some_of(random, listed, 60);
    wrong = check_read(instance.provider(), listed, read_ok(instance, asked), asked);
    for (std::size_t at = 0; wrong.empty() && at < std::min<std::size_t>(asked.size(), 5); ++at) {
      wrong = check_read(instance.provider(), listed, read_ok(instance, {asked[at]}), {asked[at]});
    }
    if (wrong.empty()) return;
  }
  throw RuleBroken(wrong);
}

void unknown_identity(const Subject& subject) {
  auto random = random_of(subject, "refresh.unknown_identity");
  const Instance instance(subject);
  const Listing listed = listing_of(list(instance));
  const auto known = some_of(random, listed, 2);
  for (const auto& kind : instance.provider().info().kinds) {
    const Identity unknown{{kind, "no-such-" + random_word(random, 8)}, {}};
    std::vector<Identity> asked{unknown};
    if (!known.empty()) asked = {known.front(), unknown, known.back()};
    const CallTrace trace = instance.read(asked);
    if (trace.status != DRIFTD_OK) {
      throw RuleBroken(
          fmt::format("read of {}, which is not there, answered {}; push NOT_FOUND with its kind and id, settle "
                      "the others and answer OK",
                      render(unknown), trace.why()));
    }
    if (!reported_gone(trace, unknown)) {
      throw RuleBroken(
          fmt::format("read of {}, which is not there, pushed no NOT_FOUND with its kind and id; its deletion "
                      "would never be noticed",
                      render(unknown)));
    }
    const auto wrong = check_read(instance.provider(), listed, trace, asked);
    const Listing now = wrong.empty() ? Listing{} : listing_of(list(instance));
    if (!wrong.empty() && !check_read(instance.provider(), now, instance.read(asked), asked).empty())
      throw RuleBroken(wrong);
  }
}

void observed(const Subject& subject) {
  constexpr std::int64_t kDay = 86'400'000'000'000;
  Host::get().set_clock([](std::int64_t real) { return real - 5000 * kDay; });
  const Instance instance(subject);
  const std::int64_t begin = Host::get().now();
  const CallTrace trace = list(instance);
  const std::int64_t end = Host::get().now();
  for (const auto& record : trace.records) {
    if (record.observed_ns < begin || record.observed_ns > end) {
      throw RuleBroken(
          fmt::format("{}: observed_ns is {}, not between the host's {} and {}; take host->now() before the "
                      "request is sent",
                      render(identity_of(record)), record.observed_ns, begin, end));
    }
  }
}

void diff(const Subject& subject) {
  const Instance instance(subject);
  if (!instance.provider().info().has_diff) throw CheckNotApplicable("does not offer diff");
  std::map<std::string, int> asked;
  for (const auto& record : list(instance).records) {
    if (asked[record.id.kind]++ < 3) diff_record(instance, record);
  }
}

void watch_quiet(const Subject& subject) {
  const Instance instance(subject);
  if (!instance.provider().info().has_watch) throw CheckNotApplicable("does not offer driftd.watch/1");
  constexpr std::chrono::milliseconds kQuiet{3000};
  constexpr int kMaxEnds = 10;
  constexpr std::uint64_t kMaxCalls = 2000;
  const auto begin = std::chrono::steady_clock::now();
  const std::int64_t cpu = cpu_ms();
  std::uint64_t calls = 0;
  for (int ends = 0; std::chrono::steady_clock::now() - begin < kQuiet; ++ends) {
    CallFaults faults;
    faults.time = std::chrono::hours(1);
    RunningCall watch = instance.start(Function::watch, {}, faults);
    while (!watch.returned() && std::chrono::steady_clock::now() - begin < kQuiet)
      (void)watch.returned_within(std::chrono::milliseconds(20));
    const bool by_itself = watch.returned();
    if (!by_itself) watch.cancel();
    const CallTrace trace = watch.wait();
    calls += trace.callbacks;
    if (by_itself && trace.status == DRIFTD_UNSUPPORTED)
      throw CheckNotApplicable("does not watch with these settings: " + trace.why());
    if (by_itself && trace.status != DRIFTD_OK) throw CheckNotMade(fmt::format("watch answered {}", trace.why()));
    if (ends >= kMaxEnds)
      throw RuleBroken(fmt::format("watch returned OK {} times within 3 s; it blocks until it is cancelled", ends));
  }
  const std::int64_t used = cpu_ms() - cpu;
  if (used > kQuiet.count() / 2 || calls > kMaxCalls) {
    throw RuleBroken(
        fmt::format("a quiet watch of 3 s used {} ms of CPU and called the host {} times; block in poll() on the "
                    "source and on cancel_fd()",
                    used, calls));
  }
}

}  // namespace driftd::check
