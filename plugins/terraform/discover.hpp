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

/// A backend that an instance is labelled to be.
struct Definition {
  sdk::Backend backend;                                 ///< holds references to secrets, never a value
  nlohmann::json discovery = nlohmann::json::object();  ///< what it is found by: service, secret, helm_release
  /// username, password: the values, as far as the state has them
  nlohmann::json credentials = nlohmann::json::object();
  std::string unread;  ///< why the state has no credentials, though it has a place for them; empty: it has none or all
};

/// The definition in an instance (`prism.io/backend=true`, name from `prism.io/backend-name`): a kubernetes_secret, a
/// helm_release, or of a type that the settings name. Nothing: there is none, or it cannot be told, and then `why` is
/// set.
std::optional<Definition> definition_of(const Reading& reading, const Instance& instance, const Settings& settings,
                                        std::string& why);

/// What the state says of that backend, as its record of kind `registration`: paths by the RFC's field names, values of
/// secrets in sensitive paths only.
sdk::Record registration_of(const Reading& reading, const Instance& instance, const Definition& definition);

/// The backends of one reading. Lives as long as the reading and the settings.
class Finder {
 public:
  Finder(const Reading& reading, const Settings& settings) : reading_(reading), settings_(settings) {}
  /// The definition in this instance, unless its name was defined before.
  std::optional<Definition> find(const Instance& instance);

  std::vector<sdk::Backend> backends;
  std::vector<sdk::Diagnostic> diagnostics;  ///< not empty: `backends` are not all that there are
  std::set<std::string> names;

 private:
  const Reading& reading_;
  const Settings& settings_;
};

}  // namespace driftd::terraform
