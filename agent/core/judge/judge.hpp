// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/drift.hpp"
#include "core/judge/decision.hpp"
#include "core/judge/declaration.hpp"
#include "core/judge/diff.hpp"
#include "core/resource.hpp"

namespace driftd::core {

struct Rules;

/// What the store keeps of one resource: its row and its open drifts.
struct StoredResource {
  ResourceId id;
  std::int64_t revision = 0;  ///< optimistic lock of a commit: 0 if the row is not stored yet, +1 with each write
  std::optional<std::string> baseline;  ///< canonical JSON; absent if none was accepted yet
  std::optional<std::string> observed;  ///< canonical JSON as last read; absent if the resource is not there now
  std::string external_name;            ///< of the baseline
  std::string observed_external_name;   ///< as last read
  std::string origin, version, status = "{}";
  std::map<std::string, std::string> metadata;
  std::vector<std::string> was_unread;  ///< never readable paths of the baseline (if absent: of the observed body)
  std::uint32_t schema_revision = 1;
  Nanos observed_ns = 0;
  Digest digest;                       ///< of the last observation (resource.hpp)
  std::uint64_t rules_generation = 0;  ///< generation_under() of the judgement that wrote this row
  std::vector<Drift> open;
};

/// The resource was read.
struct Present {
  Observation observation;
  /// A change that the provider's own diff demoted to equivalent or unsettled. The engine asks for it before judging.
  struct DemotedChange {
    std::string path;
    bool unsettled = false;
    std::string reason;
  };
  std::vector<DemotedChange> demoted;
};
/// The resource is confirmed gone: a complete list or a tombstone said so, and a read answered not_found.
struct Absent {
  Nanos observed_ns = 0;
};
/// Nothing can be said about the resource now.
struct Unknown {
  std::string reason;
  Nanos at_ns = 0;
};
using Reading = std::variant<Present, Absent, Unknown>;

/// A write of driftd that the resource may show. If the drift then went away, it did not go away by itself: it was
/// enforced (semantics 16).
struct OwnWrite {
  std::string drift_id, digest;  ///< the drift, and its values that were put back
  std::string actor, reason;
};

/// What a judgement needs besides the resource. Immutable during a page.
struct JudgeContext {
  std::string backend_uid;
  std::shared_ptr<const KindSchema> schema;
  std::shared_ptr<const Rules> rules;
  bool established = false;  ///< the kind has its baseline: one complete list was read (semantics 6)
  /// The kind has no baseline because a part of its list is denied or is over the budget: resources that were read are
  /// judged, others become part of the baseline when they come in, because they may have been there before.
  bool partial = false;
  bool applied_state = false;  ///< a Terraform state was applied: config is `auto` by default (semantics 11)
  Nanos now_ns = 0;
  /// Earlier revisions of `schema`, by number. They show which attributes changed type, class or flags (semantics 10).
  /// A revision that is missing here counts as unchanged, so that nothing gets a new baseline on a guess.
  std::map<std::uint32_t, std::shared_ptr<const KindSchema>> former;
  std::vector<Declaration> declared;          ///< every source's declaration of the judged resource
  const KnownNames* known = nullptr;          ///< DiffOptions::known
  std::shared_ptr<const RedactionKeys> keys;  ///< null: a clear-text value cannot be compared with a digest
  std::string deletions_accepted_by;          ///< who approved `scope/<kind>`, and so each deletion; else empty
  std::optional<OwnWrite> own_write;          ///< of the judged resource, while its outcome is not known
};

/// Returns the StoredResource::rules_generation of a row that is judged under this context. Returns 0 while the kind
/// has no baseline, so that its rows are judged again once it has one.
std::uint64_t generation_under(const JudgeContext& context);

/// One transition of one drift.
struct Transition {
  Drift drift;                      ///< as it is after the transition
  std::optional<DriftStatus> from;  ///< absent if the drift was just opened
  bool moved = false;               ///< the values of an open drift changed
  std::vector<Change> changes;      ///< as the event carries them; old and new are swapped if the drift was reverted
};

/// The outcome of judging or deciding: the row to write and the transitions, in order.
struct Judgement {
  StoredResource next;  ///< `open` holds the drifts still open; ended ones are only in `transitions`
  std::vector<Transition> transitions;
  bool dropped = false;  ///< the observation is older than the last one (semantics 8): write nothing
  std::vector<UnknownPath> unknown;
  /// Number of suppressed changes by reason, counted in metrics: `ignore-rule`, `standing`, `unsettled`, `equivalent`,
  /// `health`, `schema-revision`, `reread`.
  std::map<std::string, std::uint64_t> suppressed;
};

/// Judges one reading of a resource against its stored state (README.md lists the stages). Pure; any thread.
Judgement judge(const JudgeContext& context, const StoredResource& stored, const Reading& reading);
/// Sets decisions that expired by `now_ns` back to what the policy says. The judgement has no transitions if none did.
Judgement expire_decisions(const StoredResource& stored, Nanos now_ns);

/// Judges the pseudo-resource `backend/<name>`: another system identity behind the endpoint is one manual endpoint
/// drift (semantics 3). An empty `identity` is unknown. If `accepted` is empty, `identity` becomes the accepted one.
Judgement judge_identity(const std::string& backend_uid, const StoredResource& stored, const std::string& accepted,
                         const std::string& identity, Nanos now_ns);
/// Returns true if more than 10 and more than 20 % of `known` resources are missing at once (semantics 4).
bool mass_deletion(std::size_t known, std::size_t missing);
/// How many names of missing resources a mass-deletion drift shows.
enum class GoneNames : std::uint8_t {
  first,  ///< the first 1,000 names, at most 64 KiB
  all,    ///< all names, for a caller that has limited them already
};
/// Returns {"count":n,"names":[…]} with sorted names. If names were left out, the member `sha256` is the digest of all
/// of them.
Value gone_value(std::vector<std::string> names, GoneNames shown = GoneNames::first);
/// Judges the pseudo-resource `scope/<kind>`: many resources missing at once are one manual config drift at path
/// `gone`, whose value is a gone_value(). Call it without names once they are back or their deletion is accepted.
Judgement judge_scope(const std::string& backend_uid, const StoredResource& stored, std::vector<std::string> missing,
                      Nanos now_ns, GoneNames shown = GoneNames::first);

/// Judges the pseudo-resource `claim/<backend>`: sources that report its registration but are not named in the
/// configuration are one manual config drift at path `claimed_by`, a list of texts. Those accepted before stay accepted
/// while they are in `registrars`.
Judgement judge_claims(const std::string& backend_uid, const StoredResource& stored,
                       std::vector<std::string> registrars, Nanos now_ns);
/// The registrars that `claim/<backend>` listed when it was last judged, and those of them that were approved.
struct ClaimState {
  std::vector<std::string> registrars, accepted;
};
ClaimState claim_state(const StoredResource& stored);

}  // namespace driftd::core
