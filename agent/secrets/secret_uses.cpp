// SPDX-License-Identifier: Apache-2.0
#include "secrets/secret_uses.hpp"

namespace driftd::secrets {

SecretUses::SecretUses(const config::Config& config) {
  for (const auto& use : config.program_uses) uses_[use.backend].programs.push_back(use);
  for (const auto& use : config.file_uses) uses_[use.backend].files.push_back(use);
  for (const auto& spec : config.backends) {
    if (const auto used = uses_.find(spec.name); used != uses_.end()) used->second.spec = spec;
  }
}

void SecretUses::set(const config::BackendEntry& entry) {
  uses_.erase(entry.spec.name);
  if (!entry.programs.empty() || !entry.files.empty()) uses_[entry.spec.name] = entry;
}

void SecretUses::erase(const std::string& backend) { uses_.erase(backend); }

const config::BackendEntry* SecretUses::find(const std::string& backend) const {
  const auto found = uses_.find(backend);
  return found == uses_.end() ? nullptr : &found->second;
}

void SecretUses::protect(const std::vector<std::filesystem::path>& files) {
  protected_.insert(files.begin(), files.end());
}

std::vector<std::filesystem::path> SecretUses::protected_files() const {
  return {protected_.begin(), protected_.end()};
}

}  // namespace driftd::secrets
