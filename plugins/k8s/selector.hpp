// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace driftd::k8s {

/// A label selector as the API server reads it (`a=b,c!=d,e in (f,g),!h`), over the labels of an object. Pure.
bool selects(const std::string& selector, const nlohmann::json& labels);

}  // namespace driftd::k8s
