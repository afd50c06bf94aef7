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

/// What one source declares of the resources of other backends: what the store holds of it, and what a run named. A
/// declaration ends when a COMPLETE run of equal count does not name it any more, or by a tombstone: it is an
/// expectation that is taken back, so no read has to confirm it. Core thread only.
class DeclarationSet {
 public:
  void load(const std::vector<core::DeclaredEntry>& known);

  /// Of one source 250,000 are kept: a record of another one is left out.
  bool has_room(const core::Observation& record) const;
  static std::string no_room();
  /// Notes that `run` saw this; what is to be written, if it says anything new. The body is as it came, not sealed.
  std::optional<core::DeclarationWrite> update(const core::Observation& record, const std::string& source_uid,
                                               std::uint32_t run);
  /// What `run` did not name of one kind of one backend.
  std::vector<core::DeclarationWrite> missing(const std::string& target, const std::string& kind,
                                              const std::string& source_uid, std::uint32_t run) const;
  /// All of the (backend, kind) pairs that a whole run did not speak of at all: a rule that was taken out.
  std::vector<core::DeclarationWrite> unmentioned(const std::set<std::pair<std::string, std::string>>& mentioned,
                                                  const std::string& source_uid) const;
  /// These were committed. Returns the backends that they speak of.
  std::set<std::string> adopt(const std::vector<core::DeclarationWrite>& written);

 private:
  struct Known {
    Digest digest;
    std::uint32_t run = 0;
    bool stored = false;
  };
  using Key = std::pair<std::string, core::ResourceId>;  // target, id
  std::map<Key, Known> known_;
};

}  // namespace driftd::engine
