// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "k8s/prism.hpp"

namespace driftd::k8s {

/// A PrismBackend and what is wrong with it. With a fault it defines nothing: what the rest of it says may be meant
/// otherwise. The schema of the shipped CRD refuses the same mistakes; another CRD, or an object that is older than it,
/// may hold them.
struct PrismSpec {
  Definition definition;
  std::vector<std::string> faults;  ///< `spec.type: expected …, found …`
  bool elsewhere = false;           ///< its Service and Secret are in another cluster
};

/// Reads a PrismBackend of any form. Pure.
PrismSpec parse_prism(const Ref& ref, const nlohmann::json& object);

}  // namespace driftd::k8s
