// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <string>
#include <vector>

#include "core/event/event.hpp"
#include "core/value/path.hpp"

namespace driftd::rpc {

/// What a stream asks for. An empty list selects everything.
struct FilterSpec {
  std::vector<std::string> backend_names, backend_types;  ///< names may be globs
  std::vector<int> event_types;                           ///< numbers of ChangeType
  std::vector<std::string> change_classes;                ///< config | credential | endpoint | health
  bool agent_events = false;
};

inline constexpr std::size_t kMaxListed = 256;  ///< entries of one list of a filter

/// Returns `invalid`, naming the field and the entry, for a list of more than kMaxListed, a name that no backend can
/// have, and an unknown type.
Status check_names(const std::string& field, const std::vector<std::string>& names);
Status check_types(const std::vector<int>& event_types);

/// Decides which events a stream gets. Immutable; any thread.
class Filter {
 public:
  /// Returns `invalid` as check_names() and check_types() do, and for an unknown class.
  static Result<Filter> make(const FilterSpec& spec);
  bool matches(const core::StoredEvent& event) const;

 private:
  bool matches_class(const core::StoredEvent& event) const;

  std::vector<core::Glob> names_;
  std::set<std::string> backend_types_, classes_;
  std::set<core::ChangeType> types_;
  bool agent_events_ = false;
};

}  // namespace driftd::rpc
