// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "core/value/value.hpp"

namespace driftd::core {

/// Which names mean the same thing, as far as is known from elsewhere: the id, ARN, name and link of a resource that a
/// Terraform state lists. No rule can say that `web` is `sg-0a1b2c`.
class KnownNames {
 public:
  /// Adds what a document knows: a Terraform state (version 4), whose instances give groups by `id`, `arn`, `name`,
  /// `self_link` and `unique_id`, or a list of groups, each a list of texts. Anything else is `invalid`, with its
  /// place.
  Status add(const Value& document);

  /// Returns true if both are names of one thing. Of a state, that thing has one of these types; empty: any type.
  bool same(const std::vector<std::string>& types, std::string_view a, std::string_view b) const;
  std::size_t size() const { return types_.size(); }  ///< groups

 private:
  void add_group(std::string type, const std::vector<std::string>& names);
  void add_instance(const std::string& type, const Value& instance);

  std::vector<std::string> types_;                                    ///< by group; empty for one that is only listed
  std::map<std::string, std::set<std::size_t>, std::less<>> groups_;  ///< by name
};

}  // namespace driftd::core
