// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "core/drift.hpp"

namespace driftd::core {

/// How far an enforcement has got. `planned`, `applying` and `applied` are open: after a restart a reading of the
/// resource decides how they ended. The others are ends.
enum class EnforcementState {
  planned,          ///< the dry run succeeded; nothing was asked of the system yet
  applying,         ///< the provider was asked, or may have been
  applied,          ///< the provider answered that the values are set; no reading has confirmed it yet
  done,             ///< a reading showed exactly the values that were put back
  failed,           ///< nothing of it is in the system
  refused,          ///< the system or the provider refuses these values; the same again would fail again
  conflict,         ///< the resource changed before the values were written
  rolled_back,      ///< the reading afterwards did not show all values, so those that were set were taken back
  rollback_failed,  ///< the same, but they could not be taken back
  unknown,          ///< no reading can tell what of it is in the system; a person decides
  undone            ///< the provider answered that the values are set, and the reading afterwards showed other ones
};
std::string_view render(EnforcementState state);
Result<EnforcementState> parse_enforcement_state(std::string_view text);
inline bool is_open(EnforcementState state) { return state <= EnforcementState::applied; }

/// Why values are put back: the drift's policy, or a person who asked for it.
enum class EnforcementCause { policy, person };
std::string_view render(EnforcementCause cause);
Result<EnforcementCause> parse_enforcement_cause(std::string_view text);

/// One operation by which driftd puts known values back into a resource. No value in it is secret: a plan that would
/// touch a withheld one is refused before there is an operation.
struct Enforcement {
  std::string id;  ///< `op-` + 16 hex
  std::string backend_uid, backend;
  ResourceId resource;
  std::string external_name;
  std::string drift_id, digest;   ///< the drift, and the digest of its changes that this operation is about
  std::vector<Change> changes;    ///< old: the value found, new: the value to put back
  std::string desired, observed;  ///< the whole bodies before it, redacted JSON
  std::string provider, provider_version;
  std::string api_version;  ///< of the kind, `redis/v1`: the provider and the revision of its schema of this kind
  std::string trace_id;     ///< 32 hex, W3C
  EnforcementCause cause = EnforcementCause::policy;
  std::string actor, reason;
  EnforcementState state = EnforcementState::planned;
  std::vector<std::string> commands, undo;  ///< in the system's own language, in order
  std::string text;                         ///< why it ended as it did, for people; empty if there is nothing to say
  std::string key;                          ///< idempotency key of each call of it
  std::string writer;                       ///< who wrote the value that was found, as far as the system tells
  int attempts = 0;                         ///< calls of the provider that were not dry runs
  Nanos planned_ns = 0, updated_ns = 0;
  std::optional<Nanos> ended_ns;
  std::optional<Nanos> retry_ns;  ///< the provider asked to be called again, not before this time
  bool accepted = false;  ///< the provider answered that the system has accepted the values and is applying them
  bool forgiven = false;  ///< a person has lifted what it means for later ones: it does not count any more
};

/// A stop that holds until a person lifts it: of everything (all three empty), or of one resource.
struct EnforcementStop {
  std::string backend_uid;
  ResourceId resource;
  std::string reason, actor;  ///< why, and who stopped it: `driftd` or a person
  Nanos at_ns = 0;
  std::optional<Nanos> lifted_ns;  ///< when a person lifted it; what had ended by then is `forgiven`
  std::string lifted_by;
  bool stands() const { return !lifted_ns; }
};

/// What the brakes and a restart need of one backend, from the store. The operations are without their bodies.
struct EnforcementRecord {
  std::vector<Enforcement> operations;  ///< by time of planning: open ones, those without a known end, recent ones
  std::vector<EnforcementStop> stops;   ///< also lifted ones
};

/// Which operations a list has.
struct EnforcementFilter {
  std::string backend;  ///< name; empty: all
  std::string about;    ///< id of a drift or of an operation; empty: all
  std::string state;    ///< empty: all
  int limit = 100;
};

/// Returns the operation in that state, with its times set.
Enforcement advanced(Enforcement operation, EnforcementState state, std::string text, Nanos now_ns);

}  // namespace driftd::core
