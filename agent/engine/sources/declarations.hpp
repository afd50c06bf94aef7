// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/ports/store.hpp"

namespace driftd::engine {

/// What one source declares about resources of other backends: what the store holds and what a run named. A declaration
/// ends with a tombstone, or when a complete run with a matching count does not name it. It is only an expectation, so
/// no read has to confirm its end. Core thread only.
class DeclarationSet {
 public:
  /// Replaces everything by what the store holds.
  void load(const std::vector<core::DeclaredEntry>& known);

  /// Returns false if the source has 250,000 declarations and this record is another one. It is then left out.
  bool has_room(const core::Observation& record) const;
  static std::string no_room();  ///< reason for what was left out
  /// Notes that `run` saw this record. Returns what is to be written, empty if nothing changed. The body is not sealed
  /// yet.
  std::optional<core::DeclarationWrite> update(const core::Observation& record, const std::string& source_uid,
                                               std::uint32_t run);
  /// Returns the withdrawals of what `run` did not name of one kind of one backend.
  std::vector<core::DeclarationWrite> missing(const std::string& target, const std::string& kind,
                                              const std::string& source_uid, std::uint32_t run) const;
  /// Returns the withdrawals of all (backend, kind) pairs that a complete run did not mention at all: a rule was
  /// removed.
  std::vector<core::DeclarationWrite> unmentioned(const std::set<std::pair<std::string, std::string>>& mentioned,
                                                  const std::string& source_uid) const;
  /// Call it when these are committed. Returns the backends that they concern.
  std::set<std::string> adopt(const std::vector<core::DeclarationWrite>& written);

 private:
  struct Known {
    Digest digest;          ///< of the declared body
    std::uint32_t run = 0;  ///< last run that named it
    bool stored = false;    ///< the store has it
  };
  using Key = std::pair<std::string, core::ResourceId>;  // target, id
  std::map<Key, Known> known_;
};

}  // namespace driftd::engine
