// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "core/resource.hpp"

namespace driftd::core {

/// What a source (a Terraform state) says of a resource of another backend: attributes that must hold there whatever
/// was accepted. It is an expectation that nobody wrote into the config.
struct Declaration {
  std::string source_uid;  ///< the backend that declares
  std::string source;      ///< its name, for people
  ResourceId id;           ///< in the backend that it speaks of
  std::string body;        ///< canonical JSON, sealed; only what is declared, by the live provider's paths
  std::map<std::string, std::string> metadata;  ///< `address`, `serial`, `run` …
  Digest digest;                                ///< of the record that said so
};

/// `declared by tf-prod (postgresql_role.app, since serial 12)`.
std::string describe(const Declaration& declaration);
/// What one declaration adds to the generation of its resource: the sum over all of them is `folded` below.
std::uint64_t generation_term(const std::string& source_uid, const Digest& digest);
/// The generation of rules that judges a resource with such declarations (generation_under); 0 stays 0.
std::uint64_t mix_declarations(std::uint64_t generation, std::uint64_t folded);

}  // namespace driftd::core
