// SPDX-License-Identifier: Apache-2.0
// What putting a drift back means, exactly. Pure functions.
#pragma once

#include <string>
#include <vector>

#include "core/drift.hpp"
#include "core/judge/judge.hpp"

namespace driftd::core {

class KindSchema;
struct RedactionKeys;

/// Returns why a change is never put back, whatever its policy: the resource came or went, it is a credential, its
/// value is withheld, or the schema says that nobody sets it. Empty if it may be.
std::string never_put_back(const Change& change, Operation operation, const KindSchema& schema);

/// Returns the changes that put a drift back: exactly its paths, from the value found (`old_value`) to the one that was
/// agreed (`new_value`). Fails with `invalid`, and says why, for what is never put back: a resource that came, went or
/// was replaced; a credential; a value that is withheld or holds a digest; an attribute that the schema calls
/// sensitive, write-only, computed or volatile; a drift that cannot be read as a whole now; the agent's own
/// pseudo-resources.
Result<std::vector<Change>> plan_enforcement(const Drift& drift, const KindSchema& schema);

/// Returns the plan with the values in the spelling that was read: a quantity that was written in another way is still
/// the value that was found, but a provider compares texts.
std::vector<Change> as_read(std::vector<Change> plan, const Observation& seen);

/// Returns the changes that take those of a plan back.
std::vector<Change> reversed(std::vector<Change> changes);

/// Where the values of a plan stand in a body.
enum class PlanStanding {
  restored,  ///< at every path the value that was put back
  found,     ///< at every path the value that was found before
  mixed      ///< anything else, also if the body cannot be judged
};
struct StandingReport {
  PlanStanding standing = PlanStanding::mixed;
  std::vector<Change> restored;  ///< changes of the plan whose new value is there
  std::string text;              ///< of a mixture: which path has which value
  bool unread = false;           ///< a path of the plan could not be read
};
/// Compares by the types of the schema, as judging does. What could not be read is neither value.
StandingReport standing_of(const std::vector<Change>& plan, const Observation& seen, const KindSchema& schema,
                           const RedactionKeys* keys);

/// Returns who marked the resource as theirs: the text at `driftd.io/owner` of its labels, annotations, tags or
/// metadata, in the body or of the record. Empty if nobody did.
std::string owner_mark(const StoredResource& resource);

/// Returns who wrote the value that stands now, in words, from what the record tells (semantics 15).
std::string writer_of(const StoredResource& resource);

}  // namespace driftd::core
