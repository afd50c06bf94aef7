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

/// The kind under which a source speaks of what defines a backend; no provider lists it for its own backend.
inline constexpr std::string_view kRegistration = "registration";

/// Kinds of the agent's own questions: which system this is, who speaks for it, whether much may be gone. What is
/// decided of them changes what is believed, so no provider has a kind of these names, nor tells of one.
inline constexpr std::array<std::string_view, 3> kOwnKinds{"backend", "claim", "scope"};
inline bool is_own_kind(std::string_view kind) {
  return std::find(kOwnKinds.begin(), kOwnKinds.end(), kind) != kOwnKinds.end();
}

/// In the metadata of a registration or of a discovered backend: where in its source the objects are that define it,
/// such as a namespace. Only a source in which many may write says it (ADR 0015).
inline constexpr std::string_view kDefinedIn = "defined_in";
/// Empty: it is not said.
std::string defined_in(const std::map<std::string, std::string>& metadata);

/// What of a backend is looked at: `include` and `exclude` of its settings (provider SDK, sdk/scope.hpp): globs over
/// `kind/id`, or a kind alone; no include: everything. What an edit puts out of scope is not deleted (semantics 4).
class Scope {
 public:
  /// From the settings as JSON; members of another form are the provider's to refuse and count as absent.
  static Scope of_settings(std::string_view settings_json);
  bool wants(const ResourceId& id) const;
  /// False when nothing of this kind can be in scope.
  bool wants_kind(const std::string& kind) const;

 private:
  std::vector<Glob> include_, exclude_;
};

}  // namespace driftd::core
