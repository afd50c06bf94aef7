// SPDX-License-Identifier: Apache-2.0
// Requests of driftd.apply made of two readings, as the agent makes them.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "support/provider_probe.hpp"

namespace driftd::test {

/// Adds the members in which two bodies differ, from `is` to `should`. Objects are compared member by
/// member, everything else is one change, as in the agent's diff.
inline void add_changes(const nlohmann::json& is, const nlohmann::json& should, const std::string& path,
                        std::vector<sdk::Change>& to) {
  const auto text = [](const nlohmann::json& object, const std::string& name) {
    return object.contains(name) ? object[name].dump() : std::string();
  };
  nlohmann::json names = is;
  names.update(should);
  for (const auto& [name, value] : names.items()) {
    const bool plain =
        name.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") == std::string::npos;
    const std::string at =
        plain ? (path.empty() ? name : path + "." + name) : path + "[" + nlohmann::json(name).dump() + "]";
    const bool both = is.contains(name) && should.contains(name);
    if (both && is[name] == should[name]) continue;
    const auto side = [&](const nlohmann::json& object) {
      return object.contains(name) ? object[name] : nlohmann::json::object();
    };
    if (side(is).is_object() && side(should).is_object()) {  // also one that only one side has
      add_changes(side(is), side(should), at, to);
    } else {
      to.push_back({static_cast<std::uint32_t>(to.size()), at, text(is, name), text(should, name)});
    }
  }
}

/// The request that puts `should` back where `is` is found.
inline sdk::Apply put_back(const sdk::Identity& id, const nlohmann::json& is, const nlohmann::json& should,
                           const std::string& key) {
  sdk::Apply out;
  out.dry_run = false;
  out.id = id;
  out.key = key;
  add_changes(is, should, {}, out.changes);
  return out;
}

inline sdk::Apply dry(sdk::Apply request) {
  request.dry_run = true;
  return request;
}

}  // namespace driftd::test
