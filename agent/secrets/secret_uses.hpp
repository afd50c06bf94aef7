// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "config/registry.hpp"

namespace driftd::secrets {

/// Which programs and files the settings of each backend name. The registry changes it while the agent runs. Core
/// thread.
class SecretUses {
 public:
  /// Takes the backends of a configuration as it was loaded, with references in plain settings unresolved, because
  /// their files are followed too.
  explicit SecretUses(const config::Config& config);
  void set(const config::BackendEntry& entry);  ///< replaces those of the backend; for sessions opened from now on
  void erase(const std::string& backend);
  const config::BackendEntry* find(const std::string& backend) const;  ///< null: it uses none
  /// Adds files that no plugin may read, whatever its settings say. They stay so until the agent ends.
  void protect(const std::vector<std::filesystem::path>& files);
  std::vector<std::filesystem::path> protected_files() const;

 private:
  std::map<std::string, config::BackendEntry> uses_;
  std::set<std::filesystem::path> protected_;
};

}  // namespace driftd::secrets
