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

/// The mass deletions of one backend that a person approved, by kind, as notes of its row.
///
/// A question about very many shows only the first of their names and the digest of all (core::gone_value). Its
/// approval covers the names that have this digest and no others. Which these are is known while the process lives that
/// asked; a later one looks whether those that are missing then have the digest. If they do not, the approval covers
/// nothing, and is asked again. Core thread only.
class Deletions {
 public:
  using Notes = std::map<std::string, std::string>;
  /// `seed`: no stranger knows it, so none can make two names with one digest.
  explicit Deletions(std::uint64_t seed) : seed_(seed) {}

  /// What the notes say from now on.
  void load(const Notes& notes);
  /// Notes that `by` approved the question that showed `shown`. Returns without a change where that is no question.
  static void approve(Notes& notes, const std::string& kind, const std::string& by, const std::string& shown);
  /// The question about a kind is about these names now; `observed`: as its pseudo-resource has it.
  void ask(const std::string& kind, const std::string& observed, const std::vector<std::string>& names);

  bool approved(const std::string& kind) const { return approvals_.contains(kind); }
  /// Who approved the deletion of this resource; nullptr: nobody.
  const std::string* approved_by(const core::ResourceId& id) const;
  /// The approval of that kind has a digest in the place of names.
  bool by_digest(const std::string& kind) const;
  /// And its names are not known.
  bool names_unknown(const std::string& kind) const;
  /// All that are missing of a kind, in any order: if its approval has their digest, it covers them.
  void match_names(const std::string& kind, std::vector<std::string> missing);
  /// The notes without those deletions of a kind that are done or came back; nothing when none is. `candidates`: among
  /// them are all that an approval by digest covers and that are missing still.
  std::optional<Notes> without_finished(const Notes& notes, const std::string& kind,
                                        const std::vector<std::string>& candidates,
                                        const std::function<bool(const std::string&)>& missing);

 private:
  struct Hash {
    std::size_t operator()(const Digest& digest) const { return static_cast<std::size_t>(digest.low); }
  };
  /// Names, 16 bytes each.
  using Names = boost::unordered_flat_set<Digest, Hash>;
  struct Approval {
    std::string by;
    std::set<std::string> names;
    std::string sha256;                     ///< in the place of `names`
    std::shared_ptr<const Names> digested;  ///< the names behind it; nullptr: they are not known
  };
  struct KnownNames {
    std::string sha256;
    std::shared_ptr<const Names> names;
  };
  bool covers(const Approval& approved, const std::string& name) const;
  std::shared_ptr<const Names> digested(const std::vector<std::string>& names) const;
  std::shared_ptr<const Names> known(const std::string& kind, const std::string& sha256) const;

  std::uint64_t seed_;
  std::map<std::string, Approval> approvals_;
  std::map<std::string, KnownNames> questions_;  ///< open questions that do not show all names
  std::map<std::string, KnownNames> remaining_;  ///< what without_finished() left
};

}  // namespace driftd::engine
