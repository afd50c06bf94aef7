// SPDX-License-Identifier: Apache-2.0
// Whose fields a change touches, from the managedFields of the object. Pure.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace driftd::k8s {

/// A field manager and one of its fields that a change touches.
struct FieldOwner {
  std::string manager;
  std::string field;  ///< `.spec.template.spec.containers[name="app"].image`
};

/// Returns each manager that owns something that differs between the object as it is and as it is wanted, once. A field
/// that nobody owns is everybody's.
std::vector<FieldOwner> owners_of_change(const nlohmann::json& now, const nlohmann::json& wanted);

}  // namespace driftd::k8s
