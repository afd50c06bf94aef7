// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "check/address.hpp"
#include "check/sink/instance.hpp"
#include "check/sink/receiver.hpp"

namespace driftd::check {

/// A sink, and the receiver that its settings lead to if they have a placeholder.
class Stand {
 public:
  enum class Answers { as_given, none };
  /// Starts the receiver and loads the sink. `id` is the check's, for its random numbers.
  Stand(const Subject& subject, const char* id, Answers answers = Answers::as_given, bool keeps = true);

  const Subject& subject() const { return subject_; }  ///< its settings lead to the receiver
  const SinkPlugin& plugin() const { return plugin_; }
  Receiver& receiver() { return receiver_; }
  EventMaker& events() { return events_; }

  bool watched() const { return names_address(given_settings_); }  ///< what the sink sends arrives at receiver()
  void expect_watched() const;                                     ///< throws CheckNotMade unless watched()
  /// Throws CheckNotApplicable if the settings lead to a UDP port only: nobody can tell whether such a peer listens.
  void expect_connects() const;
  void expect_streams() const;  ///< throws CheckNotApplicable if they lead to datagram sockets only
  /// Returns a peer that never answers, on the network that the settings lead to.
  BlackHole black_hole(BlackHole::Kind kind) const;
  /// Returns the subject with settings that lead to this peer. Throws CheckNotApplicable or CheckNotMade if the
  /// settings name no peer.
  Subject pointed_at(const BlackHole& peer) const;

  /// Delivers one full batch with a plain instance. Throws CheckNotMade if it is not delivered: the check works only
  /// with a sink that works.
  void expect_works_at_all();
  /// Throws RuleBroken, with `when` in its text, unless the sink delivers `rounds` batches, and they arrive.
  void expect_delivers(const SinkInstance& instance, const std::string& when, int rounds = 1,
                       const CallFaults& faults = {});
  /// Throws RuleBroken if an event of the batch that was settled as delivered does not arrive within five seconds. Does
  /// nothing if the receiver sees no ids: then nothing can be told.
  void expect_arrived(const Batch& batch, const CallTrace& trace, const std::string& when);

 private:
  bool shows_ids();
  BlackHole::Network network() const;
  Receiver receiver_;                 // first: it must start before the sink is loaded
  const std::string given_settings_;  ///< with placeholders
  Subject subject_;
  const SinkPlugin& plugin_;
  EventMaker events_;
};

/// Throws CheckNotMade unless the settings have a placeholder.
void expect_placeholder(const Subject& subject);

/// What the host makes of an event: the verdict, or what follows from the status if there is none.
unsigned outcome_of(const CallTrace& trace, std::uint32_t index);
bool all_delivered(const CallTrace& trace, std::size_t events);
/// `unavailable: text; event 3 of 8: no verdict`: how the call ended, and the first event that was not delivered.
std::string describe_failure(const CallTrace& trace, std::size_t events);
/// Returns the number at the end of an event's id.
std::size_t number_of(const Event& event);

/// Makes every kind of call with every kind of end: delivered, refused by the endpoint, cancelled, late, without
/// secrets, of an unknown content type; probe, flush, wake and close. For the checks that look at what the host
/// noticed.
void exercise(Stand& stand);
/// Calls every function of the table on the current thread, and runs `after` with the name of each call.
void call_every_sink_function(Stand& stand, const std::function<void(const std::string&)>& after);

}  // namespace driftd::check
