// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "core/resource.hpp"

namespace driftd::core {

/// What a source (a Terraform state) declares of a resource of another backend: attributes that must hold there,
/// whatever the baseline says. It is an expectation that comes from a source instead of the config.
struct Declaration {
  std::string source_uid;  ///< the backend that declares
  std::string source;      ///< its name, for people
  ResourceId id;           ///< in the backend that the declaration is about
  std::string body;        ///< canonical JSON, sealed; only the declared attributes, under the live provider's paths
  std::map<std::string, std::string> metadata;  ///< `address`, `serial`, `run` …
  Digest digest;                                ///< of the record that carried the declaration
};

/// Renders a declaration for people: `declared by tf-prod (postgresql_role.app, since serial 12)`.
std::string describe(const Declaration& declaration);
/// Returns what one declaration adds to the generation of its resource. The sum over all declarations of a resource is
/// `declaration_sum` below.
std::uint64_t generation_term(const std::string& source_uid, const Digest& digest);
/// Combines the generation of the rules with the declarations of a resource (see generation_under). 0 stays 0.
std::uint64_t mix_declarations(std::uint64_t generation, std::uint64_t declaration_sum);

}  // namespace driftd::core
