// SPDX-License-Identifier: Apache-2.0
// Credentials of backends in other namespaces: a Pod can only use Secrets of its own. Where --share-credentials-with
// allows it, the operator keeps a Secret beside the PrismPattern that has them. Pure.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "operator/pattern_bindings.hpp"

namespace driftd::op {

/// `order-consumer-backends`: one Secret for all slots of a PrismPattern.
std::string shared_secret_name(const std::string& pattern);
/// The keys in it: `state_store.username`, `state_store.password`.
std::string shared_key(const std::string& slot, const char* what);

/// The Secret, with the fields that the operator sets; empty if no slot needs one. `read` returns a Secret as it is
/// stored. Its annotation names the versions that were copied.
nlohmann::json shared_secret_of(const nlohmann::json& pattern, const Bindings& bindings,
                                const std::function<nlohmann::json(const k8s::Ref&)>& read);
/// What is to be copied: `state_store=infrastructure/redis/4711`, for each slot that is shared. Empty: nothing.
std::string shared_versions_of(const Bindings& bindings);

/// Annotation of that Secret: shared_versions_of(), when it was written.
inline constexpr const char* kSharedVersions = "prism.io/shared-versions";

}  // namespace driftd::op
