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
/// Returns true if the stored Secret, as the view has it (null: there is none), has these versions already.
bool has_shared(const nlohmann::json& stored, const Bindings& bindings);

/// Annotation of that Secret: what was copied into it.
inline constexpr const char* kSharedVersions = "prism.io/shared-versions";

}  // namespace driftd::op
