// SPDX-License-Identifier: Apache-2.0
// Which notifications are due: a pure function of what was sent, what waits for a decision, and the time.
#pragma once

#include <chrono>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "core/notify_settings.hpp"

namespace driftd::delivery {

using core::NotifySettings;

/// A drift that waits for a decision, as a notification shows it.
struct WaitingDrift {
  std::string id, digest, backend, kind, resource, cls;
  std::string ref;                            ///< `ID@DIGEST`, which a decision names
  std::string message;                        ///< `Field … changed from … to …`, redacted
  std::map<std::string, std::string> labels;  ///< of its backend
  Nanos opened_ns = 0;
  bool claimed = false;
  bool silenced = false;  ///< a silence matches it: it waits without a notification
  std::string actions{};  ///< APPROVE REJECT IGNORE; without APPROVE for a violated expectation
};

/// What is remembered of one group.
struct NotifyGroup {
  std::string title;               ///< what its drifts have in common: `orders-kafka`
  std::string backend;             ///< if its drifts are of one backend
  std::set<std::string> reported;  ///< drifts and their values that a notification told of
  Nanos first_ns = 0;              ///< when the first drift of this life was opened; 0: it has none
  Nanos last_ns = 0;               ///< when the last notification was sent; 0: none was
  int ends = 0;                    ///< how often it ended and began again in quick succession
  bool escalated = false;
  bool held = false;  ///< muted, because its backend is down, while there was something to send
  friend bool operator==(const NotifyGroup&, const NotifyGroup&) = default;
};

struct NotifyState {
  std::map<std::string, NotifyGroup> groups;  ///< by key
  std::vector<Nanos> sent;                    ///< times of the notifications of the last hour, oldest first
  friend bool operator==(const NotifyState&, const NotifyState&) = default;
};

/// One notification.
struct Note {
  std::string kind;   ///< opened | changed | reminder | escalation | ended | summary
  std::string group;  ///< key; empty in a summary
  std::string backend, title, message;
  std::size_t count = 0;               ///< drifts that wait
  std::vector<WaitingDrift> listed{};  ///< the oldest of them
  std::string remark{};                ///< the end of the message, which is not about one drift; empty: there is none
};

struct NotifyInput {
  Nanos now_ns = 0;
  std::vector<WaitingDrift> waiting;
  std::set<std::string> down;  ///< backends that cannot be reached
  Nanos silent_until_ns = 0;   ///< when the next silence ends; 0: there is none
};

struct NotifyOutcome {
  NotifyState next;
  std::vector<Note> notes;
  Nanos next_ns = 0;  ///< when something may be due although nothing changes; 0: never
};

/// Decides what is sent now. Never more than `max_per_hour` notifications in any hour; what does not fit waits, and is
/// sent as one summary. A group that ends and begins again and again is sent ever more rarely. Pure.
NotifyOutcome notify(const NotifySettings& settings, NotifyState state, const NotifyInput& input);

/// The states as the store keeps them, by name: one of each group, and `sent`. [notify_state.cpp]
std::map<std::string, std::string> render_states(const NotifyState& state);
/// Reads them; a state that is not valid is left out, so that its group is sent once more. [notify_state.cpp]
NotifyState parse_states(const std::map<std::string, std::string>& states);

}  // namespace driftd::delivery
