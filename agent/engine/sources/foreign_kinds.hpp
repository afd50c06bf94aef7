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

/// What a run received of one kind.
struct KindReport {
  std::uint64_t received = 0, unknown = 0;  ///< records; those that could not be judged
  std::uint64_t left_out = 0;               ///< declarations or new resources that were left out, over a budget
  bool complete = false;
  bool withheld = false;             ///< the system denied a part of the list, or cannot serve it
  std::vector<std::string> reasons;  ///< why not, or what could not be read
};

/// Adds a reason if it is new and there are fewer than `max`: a provider may send another text each time.
void add_once(std::vector<std::string>& reasons, const std::string& reason, std::size_t max = 100);
/// The reason for an incomplete kind without any other reason.
inline constexpr const char* kIncompleteReason = "not listed whole: the provider sent no COMPLETE";

/// Returns the name of the coverage line for one kind of another backend, as a source reports it.
std::string declared_line(const std::string& backend, const std::string& kind);
/// Returns the backend part of that name for everything defined in one namespace. It cannot be mistaken for a backend,
/// whose name has no `/`.
std::string place_line(const std::string& place);

/// How complete the reports on registrations were in the last run of a source.
struct RegistrationLines {
  struct Line {
    bool complete = false;
    std::string reason;  ///< the first reason
  };
  const Line* find(const std::string& name) const;
  std::unordered_map<std::string, Line> lines;  ///< by the name of the coverage line
  bool left_out = false;                        ///< the source sent more than the limits allow
};

/// What a source sent in one run for kinds of other backends. It may name any number of them, so 10,000 kinds of
/// registered backends and 10,000 of other backends are kept. The rest is only counted, and then the run does not end
/// anything that it did not name.
class ForeignKinds {
 public:
  using BackendKind = std::pair<std::string, std::string>;  // backend and kind

  /// Returns the entry of that kind, or nullptr if it is left out because the limit is reached.
  KindReport* at(const std::string& backend, const std::string& kind, bool registered);
  bool named(const BackendKind& of) const { return registered_.contains(of) || others_.contains(of); }
  std::set<BackendKind> all() const;
  /// Number of records, marks and diagnostics that were left out.
  std::uint64_t left_out() const { return left_out_; }
  /// Adds a coverage line for each of the first 1,000 kinds, registered backends first, and one line `declared:*/*` for
  /// the rest.
  void add_lines(std::vector<core::Coverage>& coverage) const;
  RegistrationLines registrations() const;

 private:
  using Kinds = std::map<BackendKind, KindReport>;
  core::Coverage rest(std::vector<Kinds::const_iterator> kinds) const;  ///< one line for kinds beyond the first 1,000

  Kinds registered_, others_;
  std::uint64_t left_out_ = 0;
};

}  // namespace driftd::engine
