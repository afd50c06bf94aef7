// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/resource.hpp"
#include "core/value/path.hpp"

namespace driftd::core {

/// The kind of a source's reports about what defines another backend. No provider lists it for its own backend.
inline constexpr std::string_view kRegistration = "registration";

/// Kinds of the agent's own pseudo-resources: which system this is, who may report its registration, whether many
/// resources may be gone. Decisions on them change what the agent trusts, so no provider may have or report a kind of
/// these names.
inline constexpr std::array<std::string_view, 3> kOwnKinds{"backend", "claim", "scope"};
inline bool is_own_kind(std::string_view kind) {
  return std::find(kOwnKinds.begin(), kOwnKinds.end(), kind) != kOwnKinds.end();
}

/// Metadata of a registration or of a discovered backend: where in its source the objects are that define it, such as a
/// namespace. Only sources in which several parties may write have it (ADR 0015).
inline constexpr std::string_view kDefinedIn = "defined_in";
/// Returns that metadata. Empty if there is none.
std::string defined_in(const std::map<std::string, std::string>& metadata);

/// Which resources of a backend are monitored: `include` and `exclude` of its settings (provider SDK, sdk/scope.hpp),
/// which are globs over `kind/id` or a kind alone. Without `include` everything is. A resource that an edit puts out of
/// scope does not count as deleted (semantics 4).
class Scope {
 public:
  /// Parses the settings (JSON). Members of a wrong form count as absent; refusing them is up to the provider.
  static Scope of_settings(std::string_view settings_json);
  bool wants(const ResourceId& id) const;
  /// Returns false if nothing of this kind can be in scope.
  bool wants_kind(const std::string& kind) const;

 private:
  std::vector<Glob> include_, exclude_;
};

}  // namespace driftd::core
