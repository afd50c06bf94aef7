// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "driftd/sdk/scope.hpp"

namespace driftd::terraform {

/// Reads the members of one JSON object of the settings; each mistake throws sdk::Failure INVALID that names the
/// member.
class Fields {
 public:
  /// `where`: `settings.backend`. The object must outlive it.
  Fields(const nlohmann::json& from, std::string where);

  std::string text(const char* name, std::string fallback = {});
  /// Throws where it is absent or empty; `expected` says what it should be.
  std::string required(const char* name, const char* expected);
  bool flag(const char* name, bool fallback);
  std::chrono::milliseconds ms(const char* name, std::chrono::milliseconds fallback);
  std::vector<std::string> texts(const char* name);
  std::map<std::string, std::string> map(const char* name);
  const nlohmann::json& object(const char* name);  ///< an empty one when it is absent
  const nlohmann::json& list(const char* name);    ///< an empty one when it is absent
  bool has(const char* name) const { return from_.contains(name); }
  /// Every member was asked for, or it is unknown.
  void finish() const;
  [[noreturn]] void invalid(const std::string& name, const std::string& expected) const;

 private:
  const nlohmann::json& from_;
  std::string where_;
  std::set<std::string> known_;
};

/// Which instances of the state declare something of another backend that driftd watches.
struct DeclarationRule {
  std::string resources;  ///< glob over the type, `postgresql_*`; over the address where it holds a dot
  std::string provider;   ///< glob over the provider configuration's address or alias; empty: any
  std::string backend;    ///< name of the driftd backend
  std::string database;   ///< of what lies in databases (extensions, schemas): glob over those that the backend reads
};

/// Where a resource of a type that is not ours by name keeps what discovery wants: attribute paths (`tags`, `host`).
struct DiscoverType {
  std::string resources, labels, endpoint, port, version, type, username{}, password{};
};

/// Settings of one instance, as in schema.json. Immutable.
struct Settings {
  nlohmann::json backend;  ///< {"type": …}; what its source reads by Fields
  std::string workspace = "default";
  std::chrono::milliseconds connect{5000}, call{20000};
  std::chrono::milliseconds poll{0};  ///< 0: the host's interval
  sdk::Scope scope;
  sdk::Scope registration_scope;       ///< of registrations: `exclude` alone, as the agent has it
  std::vector<std::string> sensitive;  ///< globs over attribute names that are secret beside the well-known ones
  std::vector<DeclarationRule> declares;
  std::string label_prefix = "prism.io";
  std::vector<DiscoverType> discover;
  std::string fingerprint;  ///< differs whenever what is emitted for one and the same state would
};

/// From the JSON that open() gets. Throws sdk::Failure INVALID with the setting's name.
Settings parse_settings(std::string_view json);

}  // namespace driftd::terraform
