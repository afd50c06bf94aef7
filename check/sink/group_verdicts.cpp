// SPDX-License-Identifier: Apache-2.0
// Group verdicts: what a sink says of an event is true. A false "delivered" is an event lost for ever.
#include <fmt/format.h>
#include <sys/mman.h>

#include <atomic>
#include <csignal>
#include <new>

#include "check/progress.hpp"
#include "check/random.hpp"
#include "check/runner.hpp"
#include "check/sink/groups.hpp"
#include "check/sink/host_table.hpp"
#include "check/sink/stand.hpp"

namespace driftd::check::sink {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

CallFaults within(milliseconds time) {
  CallFaults out;
  out.time = time;
  return out;
}

void works(const Subject& subject) {
  Stand stand(subject, "verdicts.works");
  const auto instance = SinkInstance::open_plain(stand.subject());
  const Batch batch = stand.events().batch(1);
  const CallTrace trace = instance->deliver(batch);
  if (all_delivered(trace, batch.size())) return;
  throw RuleBroken(fmt::format("one event to a receiver that takes everything: expected delivered, found {}",
                               describe_failure(trace, batch.size())));
}

void complete(const Subject& subject) {
  Stand stand(subject, "verdicts.complete");
  const auto instance = SinkInstance::open_plain(stand.subject());
  for (int i = 0; i < 3; ++i) {
    const Batch batch = stand.events().full_batch(16);
    const CallTrace trace = instance->deliver(batch);
    if (trace.status != DRIFTD_OK) continue;  // then the status stands for the verdicts that are missing
    for (std::uint32_t n = 0; n < batch.size(); ++n) {
      if (trace.settled.contains(n)) continue;
      throw RuleBroken(fmt::format(
          "deliver answered OK: expected a verdict for each of {} events, found none for event {}; it is sent again "
          "and uses up an attempt",
          batch.size(), n));
    }
  }
}

void expect_no_violation_in_exercise(const Subject& subject, const char* id) {
  Stand stand(subject, id);
  exercise(stand);
  Host::get().expect_no_violation(id);
}

void valid(const Subject& subject) { expect_no_violation_in_exercise(subject, "verdicts.valid"); }
void once(const Subject& subject) { expect_no_violation_in_exercise(subject, "verdicts.once"); }
void reason(const Subject& subject) { expect_no_violation_in_exercise(subject, "verdicts.reason"); }

void arrives(const Subject& subject) {
  Stand stand(subject, "verdicts.arrives");
  stand.expect_watched();
  const auto instance = SinkInstance::open_plain(stand.subject());
  for (int i = 0; i < 5; ++i) {
    const Batch batch = stand.events().full_batch();
    stand.expect_arrived(batch, instance->deliver(batch), fmt::format("batch {} of {} events", i + 1, batch.size()));
  }
  if (stand.receiver().arrivals().empty())
    throw CheckNotMade(
        "no event id can be found in what the receiver got; send it in plain text, so that a receiver can "
        "drop duplicates");
}

/// Expects that the events wait for the endpoint and use up no attempt.
void expect_waits(const CallTrace& trace, std::size_t events, const std::string& when) {
  for (std::uint32_t i = 0; i < events; ++i) {
    const unsigned outcome = outcome_of(trace, i);
    if (outcome == DRIFTD_OUTCOME_RETRY_SINK || outcome == DRIFTD_OUTCOME_REFUSED) continue;
    throw RuleBroken(fmt::format(
        "{}: expected RETRY_SINK, or no verdict and UNAVAILABLE, found {} for event {} and the status {}; an endpoint "
        "that is down must cost no event",
        when, outcome_name(outcome), i, trace.why()));
  }
}

void unreachable(const Subject& subject) {
  Stand stand(subject, "verdicts.unreachable");
  stand.expect_connects();
  const BlackHole refusing = stand.black_hole(BlackHole::Kind::refusing);
  const BlackHole full = stand.black_hole(BlackHole::Kind::full);
  const auto refused = SinkInstance::open_plain(stand.pointed_at(refusing));
  for (int i = 0; i < 3; ++i) {
    const Batch batch = stand.events().full_batch(8);
    expect_waits(refused->deliver(batch, within(seconds(5))), batch.size(), "the connection is refused");
  }
  const auto unanswered = SinkInstance::open_plain(stand.pointed_at(full));
  const Batch batch = stand.events().full_batch(8);
  expect_waits(unanswered->deliver(batch, within(seconds(1))), batch.size(), "connecting is never answered");
}

/// Returns true if the sink sends a large body as it is, and does not leave it out or give it up.
bool sends_bodies(Stand& stand) {
  constexpr std::size_t kBytes = 1u << 20;
  const auto instance = SinkInstance::open_plain(stand.subject());
  const std::uint64_t before = stand.receiver().bytes();
  const Batch large{stand.events().next(0, std::string(kBytes, 'x'))};
  const CallTrace trace = instance->deliver(large);
  stand.expect_arrived(large, trace, "an event of 1 MiB");
  return all_delivered(trace, 1) && stand.receiver().bytes() - before >= kBytes;
}

void not_read(const Subject& subject) {
  constexpr std::size_t kBytes = 30u << 20;  // more than the buffers of two sockets hold
  Stand stand(subject, "verdicts.not_read");
  stand.expect_watched();
  stand.expect_streams();
  stand.expect_works_at_all();
  if (!sends_bodies(stand)) throw CheckNotApplicable("it sends no large bodies; small messages fit into the socket");
  const BlackHole deaf = stand.black_hole(BlackHole::Kind::deaf);
  const auto instance = SinkInstance::open_plain(stand.pointed_at(deaf));
  for (int i = 0; i < 2; ++i) {
    const CallTrace trace = instance->deliver({stand.events().next(0, std::string(kBytes, 'x'))}, within(seconds(1)));
    if (outcome_of(trace, 0) != DRIFTD_OUTCOME_DELIVERED) continue;
    throw RuleBroken(
        "an event of 30 MiB to a peer that reads nothing was settled as delivered; settle when the receiver has "
        "acknowledged or at least when everything was sent, and not when it was queued");
  }
}

void answered(const Subject& subject) {
  if (subject.answer.empty())
    throw CheckNotApplicable("no --answer was given: nothing says that its protocol has acknowledgements");
  Stand stand(subject, "verdicts.answered", Stand::Answers::none);
  stand.expect_watched();
  const auto instance = SinkInstance::open_plain(stand.subject());
  for (int i = 0; i < 2; ++i) {
    const Batch batch = stand.events().full_batch(8);
    const CallTrace trace = instance->deliver(batch, within(milliseconds(1500)));
    for (std::uint32_t n = 0; n < batch.size(); ++n) {
      if (outcome_of(trace, n) != DRIFTD_OUTCOME_DELIVERED) continue;
      throw RuleBroken(fmt::format(
          "a receiver that reads and never answers: expected no event delivered, found event {} of {}; what is not "
          "acknowledged may be lost",
          n, batch.size()));
    }
  }
}

void reset(const Subject& subject) {
  Stand stand(subject, "verdicts.reset");
  stand.expect_watched();
  stand.expect_streams();
  stand.expect_works_at_all();
  const Batch sample = stand.events().full_batch(16);
  const std::uint64_t before = stand.receiver().bytes();
  const auto instance = SinkInstance::open_plain(stand.subject());
  stand.expect_arrived(sample, instance->deliver(sample), "a plain batch");
  const std::uint64_t size = stand.receiver().bytes() - before;
  for (const std::uint64_t part : {size / 2, size / 3, std::uint64_t{1}}) {
    stand.receiver().set_reset_after(std::max<std::uint64_t>(part, 1));
    const auto cut = SinkInstance::open_plain(stand.subject());
    const Batch batch = stand.events().full_batch(16);
    const CallTrace trace = cut->deliver(batch, within(seconds(5)));
    stand.expect_arrived(batch, trace, fmt::format("the connection was reset after {} of {} bytes", part, size));
  }
}

/// The events that a child settled as delivered before it was killed, in memory that both processes share.
class DeliveredEvents {
 public:
  DeliveredEvents() {
    void* at = ::mmap(nullptr, sizeof *page_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) throw CheckNotMade("no memory for what a child delivers");
    page_ = new (at) Page;
  }
  ~DeliveredEvents() { ::munmap(page_, sizeof *page_); }
  DeliveredEvents(const DeliveredEvents&) = delete;
  DeliveredEvents& operator=(const DeliveredEvents&) = delete;
  void add(const Batch& batch, const CallTrace& trace) {
    for (const auto& [index, settlement] : trace.settled) {
      if (settlement.outcome == DRIFTD_OUTCOME_DELIVERED && page_->count < kMax)
        page_->events[page_->count++] = number_of(batch[index]);
    }
  }
  std::vector<std::size_t> all() const { return {page_->events, page_->events + page_->count}; }

 private:
  static constexpr std::size_t kMax = 1000;
  struct Page {
    std::atomic<std::size_t> count{0};
    std::size_t events[kMax] = {};
  };
  Page* page_ = nullptr;
};

void durable(const Subject& subject) {
  constexpr int kKills = 5;
  expect_placeholder(subject);
  const std::uint64_t seed = random_of(subject, "verdicts.durable")();
  Receiver receiver({subject.answer, 0, true, subject.socket_folder});  // it outlives the processes that are killed
  receiver.look_for(EventMaker::prefix_of(seed));
  Subject inside = subject;
  inside.settings_json = with_addresses(subject.settings_json, receiver.addresses());
  DeliveredEvents delivered;
  for (std::size_t kill = 0; kill < kKills; ++kill) {
    (void)run_in_child(seconds(30), [&] {
      const auto instance = SinkInstance::open_plain(inside, {{}, false});
      const Batch batch = EventMaker(SinkPlugin::load(inside).info(), seed, kill * 1000).full_batch(16);
      delivered.add(batch, instance->deliver(batch));
      ::raise(SIGKILL);
      return std::string();
    });
  }
  if (delivered.all().empty()) throw CheckNotMade("no event was delivered; see verdicts.works");
  const long missing = receiver.await(delivered.all(), seconds(3));
  if (missing < 0) return;
  if (receiver.bytes() > 0 && receiver.arrivals().empty())
    throw CheckNotMade("no event id can be found in what the receiver got; see verdicts.arrives");
  throw RuleBroken(
      fmt::format("the process was killed as soon as deliver had returned: {} events were settled as delivered, and "
                  "event {}-{:06} never arrived; keep no queue of your own: settle when it was sent, in deliver",
                  delivered.all().size(), EventMaker::prefix_of(seed), missing));
}

constexpr Check kVerdictsChecks[] = {
    {"verdicts.works", Level::must, "an event is delivered to a receiver that takes everything", seconds(90), &works},
    {"verdicts.complete", Level::should, "deliver that answers OK has settled each event", seconds(200), &complete},
    {"verdicts.valid", Level::must, "verdicts name an event of the batch and an outcome of the header", seconds(120),
     &valid},
    {"verdicts.once", Level::must, "no event gets two verdicts", seconds(120), &once},
    {"verdicts.reason", Level::should, "a verdict other than delivered comes with a detail", seconds(120), &reason},
    {"verdicts.arrives", Level::must, "what was settled as delivered has arrived", seconds(120), &arrives},
    {"verdicts.durable", Level::must,
     "what was settled as delivered arrives, also if the process is killed right after", seconds(120), &durable},
    {"verdicts.unreachable", Level::must,
     "an endpoint that cannot be reached makes events wait: none is delivered, a dead letter or one attempt poorer",
     seconds(90), &unreachable},
    {"verdicts.not_read", Level::must, "an event that a peer does not read is not delivered", seconds(120), &not_read},
    {"verdicts.answered", Level::must, "without an answer of the receiver nothing is delivered (needs --answer)",
     seconds(60), &answered},
    {"verdicts.reset", Level::should, "a connection that is reset in the middle: what did not arrive is not delivered",
     seconds(90), &reset},
};

}  // namespace

std::span<const Check> verdicts_checks() { return kVerdictsChecks; }

}  // namespace driftd::check::sink
