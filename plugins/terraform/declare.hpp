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

/// What an instance declares of another backend: the attributes that it sets, in the words of driftd's provider of that
/// system (its kind, id and attribute paths), so that the agent can hold one against the other.
struct Declaration {
  std::string kind, id;
  nlohmann::json body = nlohmann::json::object();
  std::vector<std::string> sensitive{};
};

/// The rule speaks of this instance, by its type (or address) and provider configuration.
bool matches(const DeclarationRule& rule, const Instance& instance);
/// Nothing: it cannot be told, and `why` says so (a type that is unknown, attributes of another form).
std::optional<Declaration> declare(const Instance& instance, const DeclarationRule& rule, std::string& why);
/// Kinds that the rule can declare; each is complete after a whole reading, also with nothing of it in the state.
std::set<std::string> declared_kinds(const DeclarationRule& rule);

}  // namespace driftd::terraform
