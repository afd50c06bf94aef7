// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/diff.hpp"
#include "core/drift.hpp"
#include "core/resource.hpp"
#include "core/rules.hpp"
#include "core/schema.hpp"

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
  std::vector<std::string> was_unread;
  std::uint32_t schema_revision = 1;
  Nanos observed_ns = 0;
  Digest digest;                        ///< of the last observation (resource.hpp)
  std::uint64_t rules_generation = 0;   ///< Rules::generation ^ schema that judged it
  std::vector<Drift> open;
};

/// Seen now; confirmed gone (COMPLETE or tombstone, and a read said not_found); or nothing can be said.
struct Seen {
  Observation observation;
  /// What the provider's own diff demoted (asked by the engine before judging): path → equivalent or unsettled.
  struct Demoted { std::string path; bool unsettled = false; std::string reason; };
  std::vector<Demoted> demoted;
};
struct Gone { Nanos observed_ns = 0; };
struct Unsure { std::string reason; Nanos at_ns = 0; };
using Sighting = std::variant<Seen, Gone, Unsure>;

/// What a judgement needs beside the resource. Immutable during a page.
struct JudgeContext {
  std::string backend_uid;
  std::shared_ptr<const KindSchema> schema;
  std::shared_ptr<const Rules> rules;
  bool established = false;    ///< the kind has its baseline: COMPLETE was seen once (semantics 6)
  bool applied_state = false;  ///< a tfstate whose serial rose under the same lineage: config is `auto` by default
  Nanos now_ns = 0;
};


/// One transition of one drift.
struct Transition {
  Drift drift;  ///< after the transition
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

/// Judges one sighting. Pure; any thread.
Judgement judge(const JudgeContext& context, const StoredResource& stored, const Sighting& sighting);

/// A person's word on a drift.
struct Decision {
  enum class Verb { approve, reject, ignore, undo, retire };
  Verb verb = Verb::approve;
  std::string actor, reason;
  std::optional<std::string> digest;  ///< what the person saw; another one now: conflict
  std::optional<Nanos> expires_ns;    ///< the decision falls back to pending then
  Nanos at_ns = 0;
};

/// Applies a decision. `not_found`: no such open drift. `conflict`: value moved or reverted since, already decided, or
/// an approval against an expectation ("change `expect:`"). Pure.
Result<Judgement> decide(const StoredResource& stored, const std::string& drift_id, const Decision& decision);

}  // namespace driftd::core
