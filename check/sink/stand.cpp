// SPDX-License-Identifier: Apache-2.0
#include "check/sink/stand.hpp"

#include <fmt/format.h>

#include "check/process_rules.hpp"
#include "check/random.hpp"
#include "check/sink/host_table.hpp"

namespace driftd::check {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kArrival{5000};  // long: a busy machine is not the sink's fault

Subject with_receiver(Subject subject, const Addresses& addresses) {
  subject.settings_json = with_addresses(subject.settings_json, addresses);
  return subject;
}

CallFaults cancelled_before() {
  CallFaults out;
  out.cancel_at = 0;
  return out;
}

}  // namespace

Stand::Stand(const Subject& subject, const char* id, Answers answers, bool keeps)
    : receiver_({answers == Answers::as_given ? subject.answer : "", 0, keeps, subject.socket_folder}),
      given_settings_(subject.settings_json),
      subject_(with_receiver(subject, receiver_.addresses())),
      plugin_(SinkPlugin::load(subject)),
      events_(plugin_.info(), random_of(subject, id)()) {
  receiver_.look_for(events_.prefix());
}

void expect_placeholder(const Subject& subject) {
  if (subject.settings_json.empty() && !subject.no_settings.empty()) throw CheckNotMade(subject.no_settings);
  if (names_address(subject.settings_json)) return;
  throw CheckNotMade(
      "the settings do not lead to the check's receiver; write ${tcp} or ${udp} where its port belongs "
      "(`port: ${tcp}`, `address: 127.0.0.1:${tcp}`), ${unix} or ${unixgram} where the path of its Unix socket does");
}

void Stand::expect_watched() const {
  if (!watched()) expect_placeholder(subject_);
}

void Stand::expect_connects() const {
  const bool udp_only = names_address(given_settings_, "udp") && !names_address(given_settings_, "tcp") &&
                        !names_unix_address(given_settings_);
  if (udp_only) throw CheckNotApplicable("its settings lead to a UDP port; nobody can tell whether a peer listens");
}

void Stand::expect_streams() const {
  expect_connects();
  if (network() == BlackHole::Network::unix_datagram)
    throw CheckNotApplicable("its settings lead to a datagram socket, which has no connection");
}

BlackHole::Network Stand::network() const {
  if (names_address(given_settings_, "unix")) return BlackHole::Network::unix_stream;
  if (names_address(given_settings_, "unixgram")) return BlackHole::Network::unix_datagram;
  return BlackHole::Network::tcp;
}

BlackHole Stand::black_hole(BlackHole::Kind kind) const { return BlackHole(kind, network(), subject_.socket_folder); }

Subject Stand::pointed_at(const BlackHole& peer) const {
  Subject out = subject_;
  if (peer.path().empty()) {
    out.settings_json = settings_with_peer(subject_, plugin_.settings_schema(), peer.host(), peer.port());
  } else {
    Addresses addresses = receiver_.addresses();
    addresses.unix_stream = addresses.unix_datagram = peer.path();
    out.settings_json = with_addresses(given_settings_, addresses);
  }
  return out;
}

void Stand::expect_works_at_all() {
  // A sink that keeps borrowed inputs works like this. memory.inputs_borrowed judges it.
  const auto instance = SinkInstance::open_plain(subject_, {{.kept = true}});
  const Batch batch = events_.full_batch(8);
  const CallTrace trace = instance->deliver(batch);
  if (!all_delivered(trace, batch.size()))
    throw CheckNotMade(
        fmt::format("deliver to the receiver: {}; see verdicts.works", describe_failure(trace, batch.size())));
}

void Stand::expect_delivers(const SinkInstance& instance, const std::string& when, int rounds,
                            const CallFaults& faults) {
  for (int round = 0; round < rounds; ++round) {
    const Batch batch = events_.full_batch(8);
    const CallTrace trace = instance.deliver(batch, faults);
    if (!all_delivered(trace, batch.size())) {
      throw RuleBroken(fmt::format("{}: expected {} events delivered, as otherwise, found {}", when, batch.size(),
                                   describe_failure(trace, batch.size())));
    }
    expect_arrived(batch, trace, when);
  }
}

bool Stand::shows_ids() { return !receiver_.arrivals().empty(); }

void Stand::expect_arrived(const Batch& batch, const CallTrace& trace, const std::string& when) {
  if (!watched()) return;
  std::vector<std::size_t> delivered;
  for (const auto& [index, settlement] : trace.settled) {
    if (settlement.outcome == DRIFTD_OUTCOME_DELIVERED) delivered.push_back(number_of(batch[index]));
  }
  const long missing = receiver_.await(delivered, kArrival);
  if (missing < 0 || (receiver_.bytes() > 0 && !shows_ids())) return;
  throw RuleBroken(
      fmt::format("{}: event {}-{:06} was settled as delivered and did not arrive within {} ms ({} bytes did); settle "
                  "as DELIVERED only what the receiver has acknowledged, or what was sent whole if it cannot",
                  when, events_.prefix(), missing, kArrival.count(), receiver_.bytes()));
}

unsigned outcome_of(const CallTrace& trace, std::uint32_t index) {
  const auto found = trace.settled.find(index);
  if (found != trace.settled.end()) return found->second.outcome;
  switch (trace.status) {
    case DRIFTD_UNAVAILABLE:
    case DRIFTD_UNAUTHENTICATED:
    case DRIFTD_DENIED:
    case DRIFTD_THROTTLED:
    case DRIFTD_CANCELLED:
      return DRIFTD_OUTCOME_RETRY_SINK;
    case DRIFTD_DEADLINE:
      return DRIFTD_OUTCOME_REFUSED;
    default:
      return DRIFTD_OUTCOME_RETRY_EVENT;
  }
}

bool all_delivered(const CallTrace& trace, std::size_t events) {
  for (std::uint32_t i = 0; i < events; ++i) {
    if (outcome_of(trace, i) != DRIFTD_OUTCOME_DELIVERED) return false;
  }
  return !trace.threw;
}

std::string describe_failure(const CallTrace& trace, std::size_t events) {
  std::string out = trace.threw ? "an exception" : trace.status == DRIFTD_OK ? "ok" : trace.why();
  for (std::uint32_t i = 0; i < events; ++i) {
    const auto found = trace.settled.find(i);
    if (found != trace.settled.end() && found->second.outcome == DRIFTD_OUTCOME_DELIVERED) continue;
    const Settlement none;
    const Settlement& settlement = found == trace.settled.end() ? none : found->second;
    out += fmt::format("; event {} of {}: {}", i, events, outcome_name(settlement.outcome));
    return settlement.detail.empty() ? out : out + " (" + settlement.detail + ")";
  }
  return out;
}

std::size_t number_of(const Event& event) {
  return static_cast<std::size_t>(std::stoul(event.id.substr(event.id.size() - EventMaker::kDigits)));
}

void exercise(Stand& stand) {
  CallFaults late, denied;
  late.time = milliseconds(-1000);
  denied.deny_secrets = true;
  const auto instance = SinkInstance::open_plain(stand.subject());
  for (int i = 0; i < 3; ++i) (void)instance->deliver(stand.events().full_batch(16));
  for (const auto& faults : {cancelled_before(), late, denied})
    (void)instance->deliver(stand.events().full_batch(4), faults);
  Event unknown = stand.events().next(0);
  unknown.content_type = "application/x-nobody-knows";
  (void)instance->deliver({unknown});
  (void)instance->probe();
  (void)instance->probe(cancelled_before());
  if (instance->has_flush()) (void)instance->flush();
  instance->wake();
  try {
    const BlackHole refusing = stand.black_hole(BlackHole::Kind::refusing);
    CallFaults brief;
    brief.time = milliseconds(1000);
    const auto lost = SinkInstance::open_plain(stand.pointed_at(refusing));
    (void)lost->deliver(stand.events().full_batch(4), brief);
    (void)lost->probe(brief);
  } catch (const CheckNotMade&) {
    return;  // it has no peer that could refuse; the rest was exercised
  }
}

void call_every_sink_function(Stand& stand, const std::function<void(const std::string&)>& after) {
  constexpr CallMode kHere{{}, false};
  const auto did = [&](const CallTrace&, const char* what) { after(what); };
  did(stand.plugin().schema("settings"), "schema(\"settings\")");
  did(stand.plugin().schema("no such document"), "schema of an unknown name");
  {
    auto [trace, instance] = SinkInstance::open(stand.subject(), {"[]", {}}, {}, kHere);
    did(trace, "open with settings that are no object");
  }
  const auto instance = SinkInstance::open_plain(stand.subject(), kHere);
  after("open");
  (void)instance->query("driftd.nothing", 1);
  after("query");
  CallFaults denied;
  denied.deny_secrets = true;
  did(instance->deliver(stand.events().full_batch(8)), "deliver");
  did(instance->deliver(stand.events().full_batch(8), denied), "deliver with its secrets denied");
  did(instance->deliver(stand.events().full_batch(8), cancelled_before()), "deliver, cancelled already");
  did(instance->probe(), "probe");
  if (instance->has_flush()) did(instance->flush(), "flush");
  instance->wake();
  after("wake");
  instance->close();
  after("close");
}

}  // namespace driftd::check
