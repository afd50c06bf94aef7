// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "driftd/sdk/extensions.hpp"
#include "terraform/mapping.hpp"

namespace driftd::terraform {

/// The backend that an instance is labelled to be (`prism.io/backend=true`, name from `prism.io/backend-name`): a
/// kubernetes_secret, a helm_release, or of a type that the settings name. Nothing: it is none, or it cannot be told, and
/// then `why` is set. Holds references to secrets, never a value.
std::optional<sdk::Backend> backend_of(const Reading& reading, const Instance& instance, const Settings& settings, std::string& why);

}  // namespace driftd::terraform
