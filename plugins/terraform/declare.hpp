// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "terraform/settings.hpp"
#include "terraform/state.hpp"

namespace driftd::terraform {

/// The attributes that an instance declares of a resource of another backend, named as driftd's provider for that
/// system does (kind, id and attribute paths), so that the agent can compare both.
struct Declaration {
  std::string kind, id;                            ///< as the other backend's provider names them
  nlohmann::json body = nlohmann::json::object();  ///< the declared attributes
  std::vector<std::string> sensitive{};            ///< paths of secret attributes
};

/// Returns true if the rule applies to this instance, by its type (or address) and provider configuration.
bool matches(const DeclarationRule& rule, const Instance& instance);
/// Returns nullopt if the instance cannot be mapped; `why` then says so (unknown type, attributes of another form).
std::optional<Declaration> declare(const Instance& instance, const DeclarationRule& rule, std::string& why);
/// Returns the kinds that the rule can declare. Each is complete after a whole reading, even if the state holds nothing
/// of it.
std::set<std::string> declared_kinds(const DeclarationRule& rule);

}  // namespace driftd::terraform
