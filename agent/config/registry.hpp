// SPDX-License-Identifier: Apache-2.0
// Single backends: as the configuration defines them, and as callers of gRPC do.
#pragma once

#include <filesystem>
#include <string>
#include <tl/expected.hpp>
#include <vector>

#include "config/config.hpp"

namespace driftd::config {

/// A backend with the programs and files that its settings name.
struct BackendEntry {
  core::BackendSpec spec;
  std::vector<ProgramUse> programs;
  std::vector<FileUse> files;
  std::vector<std::filesystem::path> secret_files = {};  ///< read for a manual backend, whether they are followed or
                                                         ///< not
  std::vector<CredentialUse> references = {};            ///< what `resolve` may give of it
};
/// Returns the backends of a configuration, in the order of the file. `spec.defined_at` is the place in it.
std::vector<BackendEntry> entries_of(const Config& config);

/// Returns what is needed to make `next` of `running`, and adds each setting that differs to `what`: `interval`,
/// `settings`. Both have their references unresolved. The content of `${file:…}` does not count: it is followed.
core::BackendEdit compare_backends(const BackendEntry& running, const BackendEntry& next,
                                   std::vector<std::string>& what);

using ManualLimits = rpc::ManualLimits;
/// Reads the definition of a manual backend: one item of `backends:` as JSON, with the defaults of `config`. A secret
/// in clear text, a path as provider, `node`, `was`, `isolation`, `budgets` and `redact` are errors, as is what
/// `limits` does not allow. `spec.definition` is its canonical form. Returns all mistakes, without a place in a file.
/// Reads files that it names. [any thread]
tl::expected<BackendEntry, std::vector<ConfigError>> read_definition(const Config& config, const std::string& json,
                                                                     const ManualLimits& limits,
                                                                     const LoadOptions& options = {});
/// Returns the rules of `defaults`, for a backend whose own cannot be read.
core::Rules rules_of(const Defaults& defaults);
/// Renders the mistakes of a definition, separated by "; and ".
std::string render_definition(const std::vector<ConfigError>& errors);

}  // namespace driftd::config
