// SPDX-License-Identifier: Apache-2.0
#include "delivery/notify.hpp"

#include <algorithm>

namespace driftd::delivery {
namespace {

using std::chrono::seconds;

constexpr Nanos kHour = 3'600'000'000'000;
constexpr int kMaxDamping = 6;  // doublings of the interval of a group that flaps

Nanos span(seconds time) { return std::chrono::nanoseconds(time).count(); }

struct Members {
  std::vector<const WaitingDrift*> all;  ///< oldest first
  bool claimed = false;
};

std::string part_of(const WaitingDrift& drift, const std::string& by) {
  if (by == "backend") return drift.backend;
  if (by == "kind") return drift.kind;
  if (by == "class") return drift.cls;
  const auto found = drift.labels.find(by.substr(std::string("label:").size()));
  return found == drift.labels.end() ? "" : found->second;
}

/// Returns the parts of a group's name, joined.
std::string name_of(const NotifySettings& settings, const WaitingDrift& drift) {
  std::string out;
  for (const auto& by : settings.group_by) out += (out.empty() ? "" : ", ") + part_of(drift, by);
  return out;
}

std::string key_of(const NotifySettings& settings, const WaitingDrift& drift) {
  std::string out;
  for (const auto& by : settings.group_by) {
    const std::string part = part_of(drift, by);
    out += std::to_string(part.size()) + ":" + part;
  }
  return out;
}

std::string mark_of(const WaitingDrift& drift) { return drift.id + "@" + drift.digest.substr(0, 16); }

std::string counted(std::size_t count, const std::string& noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

class Notifying {
 public:
  Notifying(const NotifySettings& settings, NotifyState state, const NotifyInput& input)
      : settings_(settings),
        input_(input),
        now_(input.now_ns) {
    out_.next = std::move(state);
  }
  NotifyOutcome run();

 private:
  void gather();
  void forget_old_times();
  void look_at(const std::string& key, NotifyGroup& group);
  void end(const std::string& key, NotifyGroup& group);
  Note note_of(const std::string& key, const NotifyGroup& group, const std::string& kind) const;
  void send(const std::string& key, NotifyGroup& group, const std::string& kind);
  void summarise();
  void later(Nanos at) {
    if (out_.next_ns == 0 || at < out_.next_ns) out_.next_ns = at;
  }
  /// Returns the time until the next notification of a group that was sent before.
  Nanos interval(const NotifyGroup& group) const {
    return span(settings_.group_interval) << std::min(group.ends, kMaxDamping);
  }
  std::size_t room() const { return settings_.max_per_hour - std::min(settings_.max_per_hour, out_.next.sent.size()); }

  const NotifySettings& settings_;
  const NotifyInput& input_;
  const Nanos now_;
  std::map<std::string, Members> members_;                ///< without what is silenced
  std::set<std::string> silenced_;                        ///< groups of which something is
  std::vector<std::pair<std::string, std::string>> due_;  ///< group and kind, in order
  NotifyOutcome out_;
};

void Notifying::gather() {
  std::vector<const WaitingDrift*> sorted;
  for (const auto& drift : input_.waiting) sorted.push_back(&drift);
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto* a, const auto* b) { return a->opened_ns < b->opened_ns; });
  for (const auto* drift : sorted) {
    const std::string key = key_of(settings_, *drift);
    if (drift->silenced) {
      silenced_.insert(key);
      continue;
    }
    NotifyGroup& group = out_.next.groups[key];
    if (group.first_ns == 0) group.first_ns = std::min(now_, drift->opened_ns);
    group.title = name_of(settings_, *drift);
    Members& members = members_[key];
    const bool other = !members.all.empty() && group.backend != drift->backend;
    group.backend = other ? "" : drift->backend;
    members.all.push_back(drift);
    members.claimed = members.claimed || drift->claimed;
  }
}

/// A clock that was set back must not silence anything.
void Notifying::forget_old_times() {
  for (auto& [key, group] : out_.next.groups) group.last_ns = std::min(group.last_ns, now_);
  auto& sent = out_.next.sent;
  for (auto& at : sent) at = std::min(at, now_);
  std::erase_if(sent, [&](Nanos at) { return now_ - at >= kHour; });
}

void Notifying::end(const std::string& key, NotifyGroup& group) {
  if (!group.reported.empty()) {
    const Nanos at = group.ends == 0 ? now_ : group.last_ns + interval(group);
    if (at > now_) return later(at);
    due_.emplace_back(key, "ended");
    return;
  }
  group.first_ns = 0;
  const Nanos forgotten = group.last_ns + 2 * interval(group);
  if (group.last_ns != 0 && forgotten > now_) return later(forgotten);
  group = {};  // nothing is remembered of it: run() removes it
}

void Notifying::look_at(const std::string& key, NotifyGroup& group) {
  const auto found = members_.find(key);
  if (found == members_.end() && silenced_.contains(key)) return;  // it has not ended: run() looks after the silence
  if (found == members_.end()) return end(key, group);
  const Members& members = found->second;
  const bool fresh = std::any_of(members.all.begin(), members.all.end(),
                                 [&](const auto* drift) { return !group.reported.contains(mark_of(*drift)); });
  const bool muted = !group.backend.empty() && input_.down.contains(group.backend);
  if (muted) {
    group.held = group.held || fresh;
    return;
  }
  if (fresh) {
    const Nanos at = group.last_ns == 0 ? group.first_ns + span(settings_.group_wait) : group.last_ns + interval(group);
    if (at > now_) return later(at);
    due_.emplace_back(key, group.reported.empty() ? "opened" : "changed");
    return;
  }
  if (settings_.escalate_after.count() > 0 && !group.escalated && !members.claimed) {
    const Nanos at = group.first_ns + span(settings_.escalate_after);
    if (at <= now_) {
      due_.emplace_back(key, "escalation");
      return;
    }
    later(at);
  }
  if (settings_.repeat.count() == 0) return;
  const Nanos at = group.last_ns + span(settings_.repeat);
  if (at > now_) return later(at);
  due_.emplace_back(key, "reminder");
}

Note Notifying::note_of(const std::string& key, const NotifyGroup& group, const std::string& kind) const {
  Note out{kind, key, group.backend, "Backend drift detected: " + group.title, "", 0};
  if (kind == "ended") {
    out.title = "Backend drift ended: " + group.title;
    out.message = "Nothing waits for a decision here any more: what was reported was decided, went back or was " +
                  std::string("replaced.");
    return out;
  }
  const Members& members = members_.at(key);
  out.count = members.all.size();
  for (const auto* drift : members.all) {
    if (out.listed.size() == settings_.listed) break;
    out.listed.push_back(*drift);
    out.message += drift->message + "\n";
  }
  if (out.count > out.listed.size()) {
    out.message += "and " + std::to_string(out.count - out.listed.size()) + " more: driftd drifts --status pending";
    out.message += group.backend.empty() ? "\n" : " --backend " + group.backend + "\n";
  }
  if (kind == "reminder") out.remark += "Nobody has decided since " + render_time(group.first_ns) + ".\n";
  if (kind == "escalation") {
    out.remark += "Nobody has decided or claimed it since " + render_time(group.first_ns) + ".\n";
  }
  if (group.held) out.remark += "This was held back while " + group.backend + " was down.\n";
  out.message += out.remark;
  if (!out.message.empty()) out.message.pop_back();
  if (!out.remark.empty()) out.remark.pop_back();
  return out;
}

/// Notes what is sent with it.
void Notifying::send(const std::string& key, NotifyGroup& group, const std::string& kind) {
  group.last_ns = now_;
  group.held = false;
  if (kind == "ended") {
    group.reported.clear();
    group.first_ns = 0;
    group.escalated = false;
    ++group.ends;
    return later(now_ + 2 * interval(group));
  }
  if (kind == "escalation") group.escalated = true;
  group.reported.clear();
  for (const auto* drift : members_.at(key).all) group.reported.insert(mark_of(*drift));
  if (settings_.repeat.count() > 0) later(now_ + span(settings_.repeat));
  if (settings_.escalate_after.count() > 0 && !group.escalated) {
    later(std::max(now_, group.first_ns + span(settings_.escalate_after)));
  }
}

/// The groups that are due share one notification.
void Notifying::summarise() {
  Note note{"summary", "", "", "Backend drift detected: " + counted(due_.size(), "group"), "", 0};
  for (std::size_t i = 0; i < due_.size(); ++i) {
    NotifyGroup& group = out_.next.groups[due_[i].first];
    const auto found = members_.find(due_[i].first);
    const std::size_t count = found == members_.end() ? 0 : found->second.all.size();
    note.count += count;
    if (i < settings_.listed) {
      note.message += group.title + ": " + (count == 0 ? "ended" : counted(count, "drift")) + "\n";
    }
    send(due_[i].first, group, due_[i].second);
  }
  if (due_.size() > settings_.listed) {
    note.message += "and " + counted(due_.size() - settings_.listed, "more group") + ": driftd queue\n";
  }
  note.message.pop_back();
  out_.next.sent.push_back(now_);
  out_.notes.push_back(std::move(note));
  due_.clear();
}

NotifyOutcome Notifying::run() {
  forget_old_times();
  gather();
  for (auto& [key, group] : out_.next.groups) look_at(key, group);
  while (!due_.empty() && room() > 0) {
    if (room() == 1 && due_.size() > 1) {
      summarise();
      break;
    }
    const auto [key, kind] = due_.front();
    due_.erase(due_.begin());
    NotifyGroup& group = out_.next.groups[key];
    out_.notes.push_back(note_of(key, group, kind));
    send(key, group, kind);
    out_.next.sent.push_back(now_);
  }
  if (input_.silent_until_ns != 0) later(input_.silent_until_ns);
  if (!due_.empty()) later(out_.next.sent.empty() ? now_ + kHour : out_.next.sent.front() + kHour);
  std::erase_if(out_.next.groups, [](const auto& each) { return each.second == NotifyGroup{}; });
  return std::move(out_);
}

}  // namespace

NotifyOutcome notify(const NotifySettings& settings, NotifyState state, const NotifyInput& input) {
  return Notifying(settings, std::move(state), input).run();
}

}  // namespace driftd::delivery
