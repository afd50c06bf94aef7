// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/audit.hpp"
#include "core/drift.hpp"
#include "core/judge/declaration.hpp"
#include "core/judge/diff.hpp"
#include "core/judge/rules.hpp"
#include "core/resource.hpp"
#include "core/value/schema.hpp"

namespace driftd::core {

/// What the store keeps of one resource: the row, and its drifts that are open.
struct StoredResource {
  ResourceId id;
  std::int64_t revision = 0;            ///< 0: not in the store; +1 with each write: optimistic lock of a commit
  std::optional<std::string> baseline;  ///< canonical JSON; absent: none accepted (new, or its creation is open)
  std::optional<std::string> observed;  ///< canonical JSON as last seen; absent: not there now
  std::string external_name;            ///< of the baseline
  std::string observed_external_name;   ///< as last seen
  std::string origin, version, status = "{}";
  std::map<std::string, std::string> metadata;
  std::vector<std::string> was_unread;  ///< what the baseline (absent: the observed body) never could read
  std::uint32_t schema_revision = 1;
  Nanos observed_ns = 0;
  Digest digest;                       ///< of the last observation (resource.hpp)
  std::uint64_t rules_generation = 0;  ///< Rules::generation ^ schema that judged it
  std::vector<Drift> open;
};

/// Present now; confirmed gone (COMPLETE or tombstone, and a read said not_found); or nothing can be said.
struct Present {
  Observation observation;
  /// What the provider's own diff demoted (asked by the engine before judging): path → equivalent or unsettled.
  struct DemotedChange {
    std::string path;
    bool unsettled = false;
    std::string reason;
  };
  std::vector<DemotedChange> demoted;
};
struct Absent {
  Nanos observed_ns = 0;
};
struct Unknown {
  std::string reason;
  Nanos at_ns = 0;
};
using Reading = std::variant<Present, Absent, Unknown>;

/// What a judgement needs beside the resource. Immutable during a page.
struct JudgeContext {
  std::string backend_uid;
  std::shared_ptr<const KindSchema> schema;
  std::shared_ptr<const Rules> rules;
  bool established = false;    ///< the kind has its baseline: COMPLETE was seen once (semantics 6)
  bool applied_state = false;  ///< a tfstate whose serial rose under the same lineage: config is `auto` by default
  Nanos now_ns = 0;
  /// Earlier revisions of `schema`, by number: which attributes changed type, class or flags (semantics 10). A revision
  /// that is not here counts as unchanged: nothing is re-baselined on a guess.
  std::map<std::uint32_t, std::shared_ptr<const KindSchema>> former;
  std::vector<Declaration> declared;          ///< of the resource that is judged, by every source that declares it
  std::shared_ptr<const RedactionKeys> keys;  ///< empty: a value in clear cannot be compared with a digest
  std::string deletions_accepted_by;          ///< who approved `scope/<kind>`: a deletion is opened as approved by them
};

/// StoredResource::rules_generation of a row judged under this context; 0 while the kind is not established, so that
/// its rows are judged once it is.
std::uint64_t generation_under(const JudgeContext& context);

/// One transition of one drift.
struct Transition {
  Drift drift;                      ///< after the transition
  std::optional<DriftStatus> from;  ///< absent: just opened
  bool moved = false;               ///< the value of an open drift moved
  std::vector<Change> changes;      ///< what the event carries (reverted: states swapped)
};

/// Outcome of judging or deciding: the row to write and the transitions, in order.
struct Judgement {
  StoredResource next;  ///< `open` holds the drifts still open; ended ones are only in `transitions`
  std::vector<Transition> transitions;
  bool dropped = false;  ///< the observation is older than the last one applied (semantics 8): write nothing
  std::vector<UnknownPath> unknown;
  /// Suppressed changes by reason (`ignore-rule`, `standing`, `unsettled`, `equivalent`): feeds the books.
  std::map<std::string, std::uint64_t> suppressed;
};

/// Judges one reading. Pure; any thread.
Judgement judge(const JudgeContext& context, const StoredResource& stored, const Reading& reading);
/// Decisions that expired by `now_ns` fall back to pending; without one the judgement has no transitions.
Judgement expire_decisions(const StoredResource& stored, Nanos now_ns);

/// Pseudo-resource `backend/<name>`: another system identity behind the endpoint is one manual endpoint drift
/// (semantics 3). An empty identity is unknown. `accepted`: the one that is judged; empty: the first one becomes it.
Judgement judge_identity(const std::string& backend_uid, const StoredResource& stored, const std::string& accepted,
                         const std::string& identity, Nanos now_ns);
/// More than 20 % and more than 10 of `known` are missing at once (semantics 4).
bool mass_deletion(std::size_t known, std::size_t missing);
/// How many of its names a question about a mass deletion shows.
enum class GoneNames : std::uint8_t {
  first,  ///< the first 1,000, and of those 64 KiB
  all,    ///< for a caller whose names have a bound already
};
/// {"count":n,"names":[…]}, sorted. Where only the first names are in it, `sha256` is the digest of all of them.
Value gone_value(std::vector<std::string> names, GoneNames shown = GoneNames::first);
/// Pseudo-resource `scope/<kind>`: resources missing at once ask as one manual config drift at path `gone` with a
/// gone_value(). Call with no names once they are back or accepted.
Judgement judge_scope(const std::string& backend_uid, const StoredResource& stored, std::vector<std::string> missing,
                      Nanos now_ns, GoneNames shown = GoneNames::first);

/// Pseudo-resource `claim/<backend>`: who speaks of its registration without being named in the configuration, as one
/// manual config drift at path `claimed_by`, a list of texts. Those accepted before stay so while they are in
/// `registrars`.
Judgement judge_claims(const std::string& backend_uid, const StoredResource& stored,
                       std::vector<std::string> registrars, Nanos now_ns);
/// The registrars that `claim/<backend>` listed when it was judged last, and those of them that a person approved.
struct ClaimState {
  std::vector<std::string> registrars, accepted;
};
ClaimState claim_state(const StoredResource& stored);

/// A person's word on a drift.
struct Decision {
  enum class Verb { approve, reject, ignore, undo, retire };
  Verb verb = Verb::approve;
  std::string actor, reason;
  std::optional<std::string> digest;  ///< what the person saw; another one now: conflict
  std::optional<Nanos> expires_ns;    ///< the decision falls back to pending then
  Nanos at_ns = 0;
  Caller caller;  ///< the process that spoke, for the audit log
};

/// What stands now, for a message: `path old → new` of each change, redacted and cut.
std::string render_changes(const Drift& drift);
/// Applies a decision. `not_found`: no such open drift (reverted, superseded or approved since). `conflict`: the value
/// moved since, already decided, or an approval against an expectation ("change `expect:`"). `invalid`: an expiry in
/// the past or on an approval; an approval, rejection or ignore without a digest. Undo takes back a rejection or an
/// ignore; an approval ended its drift and moved the baseline: it cannot be undone, only answered by the next drift.
/// Pure.
Result<Judgement> decide(const StoredResource& stored, const std::string& drift_id, const Decision& decision);

}  // namespace driftd::core
