// SPDX-License-Identifier: Apache-2.0
// Group content: events of every size and kind. An event that a sink cannot send must not hold up those behind it.
#include <fmt/format.h>

#include <algorithm>

#include "check/alloc.hpp"
#include "check/progress.hpp"
#include "check/random.hpp"
#include "check/sink/groups.hpp"
#include "check/sink/host_table.hpp"
#include "check/sink/stand.hpp"

namespace driftd::check::sink {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr milliseconds kArrival{3000};

/// Delivers an event alone. Throws RuleBroken unless it is delivered or, if that is allowed, given up for good: any
/// other verdict would come again for ever, and hold up its key.
unsigned deliver_or_give_up(const SinkInstance& instance, const Event& event, const std::string& what,
                            bool may_give_up) {
  const CallTrace trace = instance.deliver({event});
  const unsigned outcome = outcome_of(trace, 0);
  if (outcome == DRIFTD_OUTCOME_DELIVERED || (may_give_up && outcome == DRIFTD_OUTCOME_PERMANENT)) return outcome;
  throw RuleBroken(fmt::format(
      "{}: expected it delivered{}, found {}{}", what, may_give_up ? " or PERMANENT" : "", describe_failure(trace, 1),
      may_give_up ? "; it would be tried again for ever, and events of its key wait behind it" : ""));
}

/// Returns true if the receiver can read the bodies: a marker of a small one arrives.
bool shows_bodies(Stand& stand, const SinkInstance& instance, const std::string& marker) {
  if (!stand.watched()) return false;
  (void)deliver_or_give_up(instance, stand.events().next(0, marker), "a plain event", false);
  return stand.receiver().await_text(marker, kArrival);
}

void sizes(const Subject& subject) {
  Stand stand(subject, "content.sizes");
  stand.expect_works_at_all();
  auto random = random_of(subject, "content.sizes");
  const auto instance = SinkInstance::open_plain(stand.subject());
  const bool shown = shows_bodies(stand, *instance, "mark" + random_word(random, 12));
  Event least = stand.events().next(1);
  least.body = stand.events().makes_json() ? "{}" : "";
  (void)deliver_or_give_up(*instance, least, "an event with an empty body", true);
  for (const std::size_t size : {std::size_t{1000}, std::size_t{70'000}, std::size_t{4} << 20}) {
    set_progress_note(fmt::format("an event with a body of {} bytes", size));
    const std::string tail = "tail" + random_word(random, 12);
    const Event event = stand.events().next(2, std::string(size, 'x') + tail);
    const std::string what = fmt::format("an event with a body of {} bytes", event.body.size());
    if (deliver_or_give_up(*instance, event, what, true) != DRIFTD_OUTCOME_DELIVERED || !shown) continue;
    if (stand.receiver().await_text(tail, kArrival)) continue;
    throw RuleBroken(fmt::format(
        "{}: it was settled as delivered, and its end did not arrive; what is too large for the receiver is PERMANENT, "
        "never cut silently",
        what));
  }
  stand.expect_delivers(*instance, "after large events");
}

void bytes(const Subject& subject) {
  Stand stand(subject, "content.bytes");
  stand.expect_works_at_all();
  auto random = random_of(subject, "content.bytes");
  const auto instance = SinkInstance::open_plain(stand.subject());
  const bool shown = shows_bodies(stand, *instance, "mark" + random_word(random, 12));
  const std::vector<std::pair<const char*, std::string>> texts{
      {"letters beyond ASCII",
       "Gr\xc3\xbc\xc3\x9f"
       "e \xe2\x82\xac \xf0\x9f\x90\xbb"},
      {"NUL", std::string("a\0b\0\0", 5)},
      {"line breaks and control characters", "a\nb\r\nc\td\x1b[31m\x7f"},
      {"quotes, brackets and percent signs", "\"'\\]]><&%s%n${x}`"},
  };
  for (const auto& [name, text] : texts) {
    const std::string what = fmt::format("an event whose body holds {}", name);
    const std::string tail = "tail" + random_word(random, 12);
    const Event event = stand.events().next(0, text + tail);
    if (deliver_or_give_up(*instance, event, what, true) != DRIFTD_OUTCOME_DELIVERED || !shown) continue;
    if (stand.receiver().await_text(tail, kArrival)) continue;
    throw RuleBroken(
        fmt::format("{}: it was settled as delivered, and what follows these bytes did not arrive; write "
                    "bodies by their length, and escape what the protocol reserves",
                    what));
  }
  stand.expect_delivers(*instance, "after unusual bytes");
}

/// Returns how many keys a slow sink can be given in two minutes, at most `wanted`. Throws CheckNotMade if they are too
/// few for a verdict.
std::size_t affordable_keys(Stand& stand, const SinkInstance& instance, std::size_t batch_size, std::size_t wanted) {
  constexpr std::size_t kFewest = 1000;
  const Batch batch = stand.events().batch(batch_size);
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < 2; ++i) (void)instance.deliver(batch);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  const double each = std::max(took.count() / static_cast<double>(2 * batch_size), 1e-9);
  const auto affordable = static_cast<std::size_t>(std::min(120 / each, static_cast<double>(wanted)));
  if (affordable >= kFewest) return affordable;
  throw CheckNotMade(
      fmt::format("too slow to judge: one event took {:.0f} ms, and {} are needed", each * 1000, kFewest));
}

void keys(const Subject& subject) {
  constexpr std::size_t kKeys = 10'000, kRounds = 4;
  constexpr long kPerKey = 16;  // bytes; less than any table needs for a key
  Stand stand(subject, "content.keys", Stand::Answers::as_given, false);
  const auto instance = SinkInstance::open_plain(stand.subject(), {{}, false});
  const std::size_t size = stand.events().full_batch().size();
  const std::size_t keys = affordable_keys(stand, *instance, size, kKeys);
  std::vector<std::vector<Batch>> rounds(kRounds);
  std::size_t key = size;
  for (auto& round : rounds) {
    for (const std::size_t end = key + keys / kRounds; key < end; key += size)
      round.push_back(stand.events().batch(size, key));
  }
  std::vector<long> grown;
  for (const auto& round : rounds) {
    const long before = live_bytes();
    for (const auto& batch : round) {
      const CallTrace trace = instance->deliver(batch);
      if (!all_delivered(trace, batch.size()))
        throw RuleBroken(fmt::format("{} different keys: expected all delivered, found {}", keys,
                                     describe_failure(trace, batch.size())));
    }
    grown.push_back(live_bytes() - before);
  }
  const long allowed = kPerKey * static_cast<long>(keys / kRounds);
  for (std::size_t i = 1; i < grown.size(); ++i) {  // in the first round caches and buffers are made
    if (grown[i] <= allowed) return;
  }
  throw RuleBroken(fmt::format(
      "{} events of different keys: expected memory that stays flat, found {} more bytes after the last {} of them; "
      "keep nothing per key: the host keeps their order",
      keys, grown.back(), keys / kRounds));
}

void unknown(const Subject& subject) {
  Stand stand(subject, "content.unknown");
  stand.expect_works_at_all();
  const auto instance = SinkInstance::open_plain(stand.subject());
  Event event = stand.events().next(0);
  event.attributes.emplace_back("of_a_later_version", "42");
  event.attributes.emplace_back("", "");
  event.attributes.emplace_back(std::string(200, 'n'), std::string(3000, 'v'));
  for (int i = 0; i < 200; ++i) event.attributes.emplace_back(fmt::format("extra_{}", i), "x");
  (void)deliver_or_give_up(*instance, event, "an event with attributes that the sink does not know", false);
  event = stand.events().next(1);
  event.attributes.clear();
  (void)deliver_or_give_up(*instance, event, "an event without attributes", false);
  event = stand.events().next(2);
  event.flags = 0xFFFFFFFCU | DRIFTD_EVENT_REPLAY;
  (void)deliver_or_give_up(*instance, event, "an event with flags that the sink does not know", false);
  event = stand.events().next(3);
  event.type = "io.driftd.something.of.a.later.version.v9";
  event.topic = "something.else";
  event.subject = "";
  (void)deliver_or_give_up(*instance, event, "an event of a type that the sink does not know", false);
}

void unknown_body(const Subject& subject) {
  Stand stand(subject, "content.unknown_body");
  stand.expect_works_at_all();
  const auto instance = SinkInstance::open_plain(stand.subject());
  Event event = stand.events().next(0);
  event.content_type = "application/x-of-a-later-version";
  event.body = std::string("\x01\x00\xff\xfe", 4);
  (void)deliver_or_give_up(*instance, event, "an event with a body of an unknown content type", true);
  stand.expect_delivers(*instance, "after a body of an unknown content type");
}

constexpr Check kContentChecks[] = {
    {"content.sizes", Level::must, "bodies from empty to 4 MiB: delivered whole, or given up for good", seconds(150),
     &sizes},
    {"content.bytes", Level::must, "letters beyond ASCII, NUL, line breaks and control characters: whole or given up",
     seconds(100), &bytes},
    {"content.keys", Level::must, "10,000 different order keys: memory stays flat", seconds(240), &keys},
    {"content.unknown", Level::must, "attributes, flags and types of a later version are delivered all the same",
     seconds(100), &unknown},
    {"content.unknown_body", Level::must, "a content type that it does not know is PERMANENT or delivered, and no more",
     seconds(100), &unknown_body},
};

}  // namespace

std::span<const Check> content_checks() { return kContentChecks; }

}  // namespace driftd::check::sink
