// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "driftd/sdk/extensions.hpp"
#include "terraform/mapping.hpp"

namespace driftd::terraform {

inline constexpr const char* kRegistration = "registration";

/// A backend that is defined by the labels of an instance.
struct Definition {
  sdk::Backend backend;                                 ///< holds references to secrets, never a value
  nlohmann::json discovery = nlohmann::json::object();  ///< where it was found: service, secret, helm_release
  /// username and password, as far as the state holds the values
  nlohmann::json credentials = nlohmann::json::object();
  std::string unread;  ///< reason why credentials are missing though the state has a place for them; empty: there are
                       ///< none or all were read
};

/// Returns the definition in an instance (`prism.io/backend=true`, name from `prism.io/backend-name`): a
/// kubernetes_secret, a helm_release, or a type that the settings name. Returns nullopt if there is none, or if it
/// cannot be read; then `why` is set.
std::optional<Definition> definition_of(const Reading& reading, const Instance& instance, const Settings& settings,
                                        std::string& why);

/// Returns the record of kind `registration` of that backend. Values of secrets are in sensitive paths only.
sdk::Record registration_of(const Reading& reading, const Instance& instance, const Definition& definition);

/// Collects the backends of one reading. Must not outlive the reading and the settings.
class Finder {
 public:
  Finder(const Reading& reading, const Settings& settings) : reading_(reading), settings_(settings) {}
  /// Returns the definition in this instance, unless its name was already defined.
  /// A second definition of a name, and one that cannot be read, is noted in `diagnostics` instead.
  std::optional<Definition> find(const Instance& instance);

  std::vector<sdk::Backend> backends;        ///< in the order of the state
  std::vector<sdk::Diagnostic> diagnostics;  ///< not empty: `backends` is incomplete
  std::set<std::string> names;               ///< of all definitions so far

 private:
  const Reading& reading_;
  const Settings& settings_;
};

}  // namespace driftd::terraform
