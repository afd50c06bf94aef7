// SPDX-License-Identifier: Apache-2.0
#include "simulation/delivery/receipts.hpp"

#include <algorithm>

namespace driftd::sim {
namespace {

using namespace std::chrono_literals;

constexpr Duration kLongestUnsaved = 5min;  // a save waits for a disk that is full, and for the process that comes
                                            // after
constexpr int kMaxRepetitions = 256;
constexpr int kMostReplayFailures = 5;  // after so many, a sink that does not try for ever leaves an event of a replay
constexpr auto kLongestUnsynced = 100ms;
constexpr Duration kSaved = 10s;    // after so long, an acknowledgement was saved
constexpr Duration kReaction = 4s;  // a fetch, a save and an fsync on a slow disk, and the pause after a failed one
constexpr Duration kPerEvent = 250ms;
constexpr double kJitter = 1.2;

Duration stretched(Duration wait) {
  return Duration(static_cast<Duration::rep>(static_cast<double>(wait.count()) * kJitter));
}

Duration doubled(Duration first, Duration most, int count) {
  if (count <= 0) return 0s;
  return stretched(std::min<Duration>(most, first * (1LL << std::min(count - 1, 16))));
}

std::string seconds(Duration time) { return std::to_string(time / 1ms) + " ms"; }

}  // namespace

std::size_t content_of(const core::StoredEvent& event) {
  return std::hash<std::string>{}(event.payload + '\n' + event.key + '\n' + event.what + '\n' + event.backend + '\n' +
                                  std::to_string(event.stamp.sequence) + '\n' +
                                  std::to_string(event.stamp.incarnation) + '\n' +
                                  std::to_string(event.stamp.recorded_ns));
}

Duration AllowedWaits::after_failures(int count) const {
  return forever ? doubled(250ms, 30s, count) : doubled(5s, 300s, count);
}

Duration AllowedWaits::after_key_failures(int count) const {
  static constexpr Duration kSchedule[] = {0s, 5s, 5min, 30min, 2h, 5h, 10h, 14h, 20h, 24h};
  if (forever || count <= 0) return doubled(250ms, 30s, count);
  return std::max(doubled(5s, 300s, count), stretched(kSchedule[std::min(count, 9)]));
}

void Receipts::expect(const Entered& event) {
  if (!expected_.emplace(event.seq, event).second) return;
  if (has_.count(event.id) != 0 || given_up_.count(event.seq) != 0 || excused_.count(event.seq) != 0) return;
  must_come(event);
}

void Receipts::must_come(const Entered& event) {
  missing_.emplace(event.seq, event);
  KeyState& key = keys_[event.key];
  if (key.missing.empty()) key.head_since = SimulatedTime::get().now();
  key.missing.insert(event.seq);
}

int Receipts::times_given_up(std::int64_t seq) const {
  const auto found = times_given_up_.find(seq);
  return found == times_given_up_.end() ? 0 : found->second;
}

void Receipts::requeued(std::int64_t seq) {
  if (given_up_.erase(seq) == 0 || excused_.count(seq) != 0) return;
  must_come(expected_.at(seq));
}

void Receipts::forget_missing(std::int64_t seq) {
  const auto found = missing_.find(seq);
  if (found == missing_.end()) return;
  KeyState& key = keys_[found->second.key];
  key.missing.erase(seq);
  key.head_since = SimulatedTime::get().now();
  missing_.erase(found);
}

std::string Receipts::unanswered() const {
  for (const auto& [id, seq] : unanswered_) {
    const auto failures = replay_failures_.find(seq);
    if (failures == replay_failures_.end() || failures->second < kMostReplayFailures) return id;
  }
  return {};
}

bool Receipts::is_settled(const std::string& id) const {
  const auto at = acknowledged_at_.find(id);
  return at != acknowledged_at_.end() && SimulatedTime::get().now() - at->second > kSaved && unanswered_.count(id) == 0;
}

std::set<std::int64_t> Receipts::outstanding() {
  std::set<std::int64_t> out = doubtful_;
  for (const auto& [seq, event] : missing_) out.insert(seq);
  for (const auto& [id, seq] : unanswered_) out.insert(seq);
  out.insert(given_up_.begin(), given_up_.end());
  const Time long_ago = SimulatedTime::get().now() - kLongestUnsaved;
  while (!lately_acknowledged_.empty() && lately_acknowledged_.front().first < long_ago)
    lately_acknowledged_.pop_front();
  for (const auto& [at, seq] : lately_acknowledged_) out.insert(seq);
  return out;
}

/// What was not saved is sent again, and its receiver may fail for long before it is.
void Receipts::doubt_lately_acknowledged() {
  const Time long_ago = SimulatedTime::get().now() - kLongestUnsaved;
  for (const auto& [at, seq] : lately_acknowledged_) {
    if (at >= long_ago) doubtful_.insert(seq);
  }
}

/// What it acknowledged last was perhaps not saved, or the save was lost with the power: however long ago that was, if
/// nothing was committed since (ADR 0023).
void Receipts::unsettle() {
  if (lately_acknowledged_.empty()) return;
  const Time unsaved = lately_acknowledged_.back().first - kSaved;
  std::erase_if(acknowledged_at_, [unsaved](const auto& one) { return one.second >= unsaved; });
}

void Receipts::rewound() {
  rewound_at_ = SimulatedTime::get().now();
  doubt_lately_acknowledged();
}

void Receipts::rewound_far() {
  rewound();
  for (const auto& [seq, event] : expected_) doubtful_.insert(seq);
}

void Receipts::excuse(std::int64_t seq) {
  if (!excused_.insert(seq).second) return;
  std::erase_if(unanswered_, [seq](const auto& one) { return one.second == seq; });
  to_replay_.erase(seq);
  forget_missing(seq);
}

/// Failures of an earlier replay of the same events count no more, if this one is accepted.
void Receipts::replay_asked(std::set<std::int64_t> seqs) {
  for (const auto seq : seqs) {
    if (auto failures = replay_failures_.extract(seq)) failures_before_.insert(std::move(failures));
  }
  replay_asked_ = std::move(seqs);
}

void Receipts::restore_failures_before() {
  for (const auto& [seq, count] : std::exchange(failures_before_, {})) replay_failures_[seq] += count;
}

void Receipts::replay_answered(bool accepted) {
  if (!accepted) restore_failures_before();
  failures_before_.clear();
  for (const auto seq : std::exchange(replay_asked_, {})) {
    if (accepted && excused_.count(seq) == 0) to_replay_.insert(seq);
  }
}

void Receipts::count_repetition(const core::StoredEvent& event) {
  const auto before = acknowledged_in_.find(event.stamp.id);
  if (before == acknowledged_in_.end() || before->second == life_) return;
  // Events of a resource are sent in order: what is missing of it comes behind what is sent once more after a restart.
  keys_[event.key].head_since = SimulatedTime::get().now();
  if (rewound_at_) return;
  before->second = life_;
  if (++repetitions_ == kMaxRepetitions + unsynced_ + 1)
    complain(name_ + " got " + std::to_string(repetitions_) + " acknowledged events again after " +
             (unsynced_ == 0 ? "a kill" : "a power loss"));
}

void Receipts::received(const core::StoredEvent& event) {
  const auto content = content_of(event);
  replay_asked_.erase(event.stamp.seq);
  to_replay_.erase(event.stamp.seq);
  if (!event.replay) {
    replay_failures_.erase(event.stamp.seq);  // it needs an answer of its own
    count_repetition(event);
  }
  if (excused_.count(event.stamp.seq) == 0) unanswered_.emplace(event.stamp.id, event.stamp.seq);
  const auto [known, first] = has_.emplace(event.stamp.id, content);
  if (known->second != content) complain(name_ + " got id " + event.stamp.id + " with two contents");
  if (!first) return;
  lines_.push_back({event.stamp.seq, event.stamp.id, event.key, content});
  std::int64_t& newest = newest_[event.key];
  const bool late = event.replay || times_given_up(event.stamp.seq) != 0;  // a person asked for it
  if (event.stamp.seq < newest && order_matters && !late) {
    complain(name_ + " got event " + std::to_string(event.stamp.seq) + " after event " + std::to_string(newest) +
             " of the same resource " + event.key);
  }
  if (!late) newest = std::max(newest, event.stamp.seq);  // a replay may go before what a rewind brings again
  forget_missing(event.stamp.seq);
}

void Receipts::acknowledged(const core::StoredEvent& event, Time sent) {
  acknowledged_in_[event.stamp.id] = life_;
  acknowledged_at_[event.stamp.id] = SimulatedTime::get().now();
  lately_acknowledged_.emplace_back(SimulatedTime::get().now(), event.stamp.seq);
  doubtful_.erase(event.stamp.seq);
  if (!event.replay) given_up_.erase(event.stamp.seq);  // `driftd replay` leaves the dead letter where it is
  unanswered_.erase(event.stamp.id);
  succeeded(event, sent);
}

void Receipts::endpoint_failed() {
  failed_at_ = last_answer_ = SimulatedTime::get().now();
  ++failures_;
}

void Receipts::flush_failed() {
  endpoint_failed();
  ++flush_failures_;
  flush_due_ = failed_at_ + waits_.after_failures(flush_failures_);
}

void Receipts::failed(const core::StoredEvent& event, std::int64_t retry_after_ms) {
  endpoint_failed();
  const Duration asked = std::min<Duration>(std::chrono::milliseconds(retry_after_ms), 1h);
  asked_ = std::max(asked_, asked);
  Failures& of = failed_[event.key][event.stamp.id];
  ++of.count;
  of.last = failed_at_;
  of.asked = std::max(of.asked, asked);
}

void Receipts::replay_failed(const core::StoredEvent& event, std::int64_t retry_after_ms) {
  ++replay_failures_[event.stamp.seq];
  failed(event, retry_after_ms);
}

void Receipts::succeeded(const core::StoredEvent& event, Time sent) {
  replay_failures_.erase(event.stamp.seq);
  last_answer_ = SimulatedTime::get().now();
  failed_[event.key].erase(event.stamp.id);
  if (sent <= failed_at_) return;
  if (failures_ != 0) recovered_at_ = last_answer_;
  failures_ = 0;
  asked_ = 0s;
}

void Receipts::gave_up(const core::StoredEvent& event, Time sent) {
  given_up_.insert(event.stamp.seq);
  ++times_given_up_[event.stamp.seq];
  forget_missing(event.stamp.seq);
  succeeded(event, sent);
}

void Receipts::lose_all_but(std::size_t lines, Duration detected_in) {
  if (lines >= lines_.size()) return;
  rewound();
  unnoticed_until_ = SimulatedTime::get().now() + detected_in;
  if (calm_since_) calm();
  for (auto line = lines; line < lines_.size(); ++line) lost_[lines_[line].seq] = SimulatedClock().wall();
  lines_.resize(lines);
  has_.clear();
  newest_.clear();
  unanswered_.clear();
  for (const auto& line : lines_) {
    has_.emplace(line.id, line.content);
    std::int64_t& newest = newest_[line.key];
    newest = std::max(newest, line.seq);
  }
  const auto expected = std::exchange(expected_, {});
  for (const auto& [seq, event] : expected) expect(event);
}

int Receipts::most_acknowledged_within(Duration span) const {
  std::ptrdiff_t most = 0;
  auto first = lately_acknowledged_.begin();
  for (auto last = first; last != lately_acknowledged_.end(); ++last) {
    while (last->first - first->first > span) ++first;
    most = std::max(most, last - first + 1);
  }
  return static_cast<int>(most);
}

void Receipts::next_life(bool power_loss) {
  ++life_;
  repetitions_ = 0;
  unsynced_ = power_loss ? most_acknowledged_within(kLongestUnsynced) : 0;
  flush_failures_ = 0;
  flush_due_ = {};
  doubt_lately_acknowledged();
  unsettle();
  open_.clear();
  replay_asked_.clear();
  restore_failures_before();
  // The process that comes after counts from the start, except for what was given up.
  std::erase_if(replay_failures_, [](const auto& one) { return one.second < kMostReplayFailures; });
  if (rewound_at_ && missing_.empty() && SimulatedTime::get().now() - *rewound_at_ > 90s) rewound_at_.reset();
}

Time Receipts::due(const std::string& name, const KeyState& key, Time since) const {
  Time due = std::max({since, *calm_since_, key.head_since, recovered_at_});
  due = std::max(due, failed_at_ + std::max(waits_.after_failures(std::max(failures_, flush_failures_)), asked_));
  due = std::max(due, flush_due_);  // also if a flush for another reason succeeds meanwhile
  const auto failed = failed_.find(name);
  if (failed == failed_.end()) return due;
  for (const auto& [id, of] : failed->second)
    due = std::max(due, of.last + std::max(waits_.after_key_failures(of.count), of.asked));
  return due;
}

void Receipts::check_progress(Time since) {
  const Time now = SimulatedTime::get().now();
  if (!attached || !calm_since_ || missing_.empty()) return;
  const bool idle = open_.empty();
  for (const auto& [name, key] : keys_) {
    if (key.missing.empty() || open_.count(name) != 0) continue;
    const Time from = due(name, key, since);
    const Duration patience =
        kReaction + (idle ? Duration(0) : waits_.longest_attempt + kPerEvent * static_cast<int>(missing_.size()));
    const Time limit = (idle ? std::max(from, last_answer_) : from) + patience;
    if (now <= limit) continue;
    complain(name_ + (idle ? " is idle" : " starves a resource") + ": event " + std::to_string(*key.missing.begin()) +
             " of " + name + " could be sent since " + seconds(now - from) + ", " + std::to_string(missing_.size()) +
             " events wait, failures of the endpoint " + std::to_string(failures_));
    return;
  }
}

}  // namespace driftd::sim
