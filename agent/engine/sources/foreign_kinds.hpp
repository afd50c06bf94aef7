// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/ports/control.hpp"

namespace driftd::engine {

/// What a run said of one kind.
struct KindReport {
  std::uint64_t received = 0, unknown = 0;
  std::uint64_t left_out = 0;  ///< declarations or new resources for which there was no room
  bool complete = false;
  std::vector<std::string> reasons;
};

/// Adds a reason that is not among them, up to a bound: a provider may say something else each time.
void add_once(std::vector<std::string>& reasons, const std::string& reason, std::size_t max = 100);
/// The reason of a kind that nothing else is amiss with.
inline constexpr const char* kIncompleteReason = "not listed whole: the provider sent no COMPLETE";

/// Name of the line of coverage for what a source says of one kind of another backend.
std::string declared_line(const std::string& backend, const std::string& kind);
/// As which backend, in that name, it stands for all that are defined in one namespace; no backend's name has a `/`.
std::string place_line(const std::string& place);

/// How whole the last run of a source was of what it says of registrations.
struct RegistrationLines {
  struct Line {
    bool complete = false;
    std::string reason;  ///< the first one
  };
  const Line* find(const std::string& name) const;
  std::unordered_map<std::string, Line> lines;  ///< by the name of the line of coverage
  bool left_out = false;                        ///< the source says more than there is room for
};

/// What a source said in one run of the kinds of other backends. It may name any, as many as it has records: 10,000
/// kinds of backends that are registered and 10,000 of such that are not have room. The rest is counted, and then
/// nothing that the run did not name is over.
class ForeignKinds {
 public:
  using BackendKind = std::pair<std::string, std::string>;  // backend, kind

  /// Where it is noted; nullptr: there is no room, it is left out.
  KindReport* at(const std::string& backend, const std::string& kind, bool registered);
  bool named(const BackendKind& of) const { return registered_.contains(of) || others_.contains(of); }
  std::set<BackendKind> all() const;
  /// Records, marks and diagnostics for which there was no room.
  std::uint64_t left_out() const { return left_out_; }
  /// A line each for the first 1,000, those of registered backends before all others, and `declared:*/*` for the rest.
  void add_lines(std::vector<core::Coverage>& coverage) const;
  RegistrationLines registrations() const;

 private:
  using Kinds = std::map<BackendKind, KindReport>;
  core::Coverage rest(std::vector<Kinds::const_iterator> kinds) const;

  Kinds registered_, others_;
  std::uint64_t left_out_ = 0;
};

}  // namespace driftd::engine
