// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace driftd::k8s {

/// Returns true if a label selector of the API server (`a=b,c!=d,e in (f,g),!h`) matches the labels of an object. Pure.
bool selects(const std::string& selector, const nlohmann::json& labels);

}  // namespace driftd::k8s
