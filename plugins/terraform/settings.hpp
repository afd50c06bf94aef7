// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "driftd/sdk/scope.hpp"

namespace driftd::terraform {

/// A rule that says which instances of the state declare resources of another backend.
struct DeclarationRule {
  std::string resources;  ///< glob over the type, `postgresql_*`; over the address where it holds a dot
  std::string provider;   ///< glob over the provider configuration's address or alias; empty: any
  std::string backend;    ///< name of the driftd backend
  std::string database;   ///< for objects inside databases (extensions, schemas): glob over the databases that the
                          ///< backend reads
};

/// Attribute paths (`tags`, `host`) in which a configured resource type keeps what discovery needs.
/// All but `resources` and `type` are attribute paths; empty: the type has no such attribute.
struct DiscoverType {
  std::string resources, labels, endpoint, port, version, type, username{}, password{};
};

/// Settings of one instance, as in schema.json. Immutable.
struct Settings {
  nlohmann::json backend;                                ///< {"type": …}; its source reads it with a SettingsReader
  std::string workspace = "default";                     ///< has no slash
  std::chrono::milliseconds connect{5000}, call{20000};  ///< time-outs of a connection and of one request
  std::chrono::milliseconds poll{0};                     ///< 0: the host's interval
  sdk::Scope scope;                                      ///< include and exclude
  sdk::Scope registration_scope;                         ///< scope of registrations: only `exclude`, as in the agent
  std::vector<std::string> sensitive;     ///< globs of secret attribute names in addition to the well-known ones
  std::vector<DeclarationRule> declares;  ///< empty: nothing is declared of other backends
  std::string label_prefix = "prism.io";  ///< of labels and annotations, without the slash
  std::vector<DiscoverType> discover;
  std::string fingerprint;  ///< differs whenever the same state would be emitted differently
};

/// Parses the JSON that open() gets. Throws INVALID with the name of the setting.
Settings parse_settings(std::string_view json);

}  // namespace driftd::terraform
