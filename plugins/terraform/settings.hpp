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

/// Reads the members of one JSON object of the settings. Each mistake throws INVALID with the name of the member.
class Fields {
 public:
  /// `where`: `settings.backend`. The object must outlive it.
  Fields(const nlohmann::json& from, std::string where);

  std::string text(const char* name, std::string fallback = {});
  /// Throws if the member is absent or empty; `expected` says what it should be.
  std::string required(const char* name, const char* expected);
  bool flag(const char* name, bool fallback);
  std::chrono::milliseconds ms(const char* name, std::chrono::milliseconds fallback);
  std::vector<std::string> texts(const char* name);
  std::map<std::string, std::string> map(const char* name);
  const nlohmann::json& object(const char* name);  ///< an empty one when it is absent
  const nlohmann::json& list(const char* name);    ///< an empty one when it is absent
  bool has(const char* name) const { return from_.contains(name); }
  /// Throws if a member was never read, because it is unknown.
  void finish() const;
  [[noreturn]] void invalid(const std::string& name, const std::string& expected) const;

 private:
  const nlohmann::json& from_;
  std::string where_;
  std::set<std::string> known_;
};

/// A rule that says which instances of the state declare resources of another backend.
struct DeclarationRule {
  std::string resources;  ///< glob over the type, `postgresql_*`; over the address where it holds a dot
  std::string provider;   ///< glob over the provider configuration's address or alias; empty: any
  std::string backend;    ///< name of the driftd backend
  std::string database;   ///< for objects inside databases (extensions, schemas): glob over the databases that the
                          ///< backend reads
};

/// Attribute paths (`tags`, `host`) in which a configured resource type keeps what discovery needs.
struct DiscoverType {
  std::string resources, labels, endpoint, port, version, type, username{}, password{};
};

/// Settings of one instance, as in schema.json. Immutable.
struct Settings {
  nlohmann::json backend;  ///< {"type": …}; its source reads it with Fields
  std::string workspace = "default";
  std::chrono::milliseconds connect{5000}, call{20000};
  std::chrono::milliseconds poll{0};  ///< 0: the host's interval
  sdk::Scope scope;
  sdk::Scope registration_scope;       ///< scope of registrations: only `exclude`, as in the agent
  std::vector<std::string> sensitive;  ///< globs of secret attribute names in addition to the well-known ones
  std::vector<DeclarationRule> declares;
  std::string label_prefix = "prism.io";
  std::vector<DiscoverType> discover;
  std::string fingerprint;  ///< differs whenever the same state would be emitted differently
};

/// Parses the JSON that open() gets. Throws INVALID with the name of the setting.
Settings parse_settings(std::string_view json);

}  // namespace driftd::terraform
