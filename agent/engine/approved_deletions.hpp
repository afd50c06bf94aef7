// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/unordered/unordered_flat_set.hpp>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/digest.hpp"
#include "core/resource.hpp"

namespace driftd::engine {

/// The mass deletions of one backend that a person approved, by kind. They are stored as notes in the backend's row.
///
/// A question about very many resources shows only the first names and a digest of all of them (core::gone_value). Its
/// approval covers exactly the names with this digest. The process that asked knows these names. A later process
/// compares the digest of what is missing then; if it differs, the approval covers nothing and the question is asked
/// again. Core thread only.
class ApprovedDeletions {
 public:
  using Notes = std::map<std::string, std::string>;
  /// `seed` is secret, so that nobody can construct two names with the same digest.
  explicit ApprovedDeletions(std::uint64_t seed) : seed_(seed) {}

  /// Replaces the approvals by those in the notes.
  void load(const Notes& notes);
  /// Notes that `by` approved the question with the value `shown`. Changes nothing if `shown` is not such a question.
  static void approve(Notes& notes, const std::string& kind, const std::string& by, const std::string& shown);
  /// Sets the names that the open question about a kind covers; `observed` is the body of its pseudo-resource.
  void ask(const std::string& kind, const std::string& observed, const std::vector<std::string>& names);

  bool approved(const std::string& kind) const { return approvals_.contains(kind); }
  /// Returns who approved the deletion of this resource, or nullptr if nobody did.
  const std::string* approved_by(const core::ResourceId& id) const;
  /// Returns true if the approval of that kind holds a digest instead of names.
  bool by_digest(const std::string& kind) const;
  /// Returns true if that approval holds a digest whose names this process does not know.
  bool names_unknown(const std::string& kind) const;
  /// Passes all missing names of a kind, in any order. If the kind's approval has their digest, it covers them from now
  /// on.
  void match_names(const std::string& kind, std::vector<std::string> missing);
  /// Returns the notes without the approved deletions of a kind that are finished or whose resource came back; empty if
  /// there are none. `candidates` must contain every missing resource that an approval by digest covers.
  std::optional<Notes> without_finished(const Notes& notes, const std::string& kind,
                                        const std::vector<std::string>& candidates,
                                        const std::function<bool(const std::string&)>& missing);

 private:
  struct Hash {
    std::size_t operator()(const Digest& digest) const { return static_cast<std::size_t>(digest.low); }
  };
  /// Digests of names, 16 bytes each.
  using Names = boost::unordered_flat_set<Digest, Hash>;
  struct Approval {
    std::string by;                         ///< user who approved
    std::set<std::string> names;            ///< ids of resources; empty if there is a digest
    std::string sha256;                     ///< digest of the names, where `names` is empty
    std::shared_ptr<const Names> digested;  ///< the names with that digest; nullptr if they are not known
  };
  struct KnownNames {
    std::string sha256;
    std::shared_ptr<const Names> names;
  };
  /// Returns true if the approval names this resource, or has the digest of names among which it is.
  bool covers(const Approval& approved, const std::string& name) const;
  std::shared_ptr<const Names> digested(const std::vector<std::string>& names) const;  ///< never null
  /// Returns the names with this digest that this process knows from a question or an earlier approval; else null.
  std::shared_ptr<const Names> known(const std::string& kind, const std::string& sha256) const;

  std::uint64_t seed_;
  std::map<std::string, Approval> approvals_;    ///< by kind
  std::map<std::string, KnownNames> questions_;  ///< open questions that show a digest instead of all names
  std::map<std::string, KnownNames> remaining_;  ///< what without_finished() kept
};

}  // namespace driftd::engine
