// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/value/value.hpp"

namespace driftd::ipc {

/// The parts of a longer text that are secret.
struct SecretParts {
  std::vector<std::string> secrets;  ///< passwords and values of a query
  std::vector<std::string> pairs;    ///< `user:password`, which HTTP sends in base64
};
SecretParts secret_parts(std::string_view text);

/// Calls `take` with `user:password` for each object of the settings that names a user beside a secret.
void for_each_login(const core::Value& settings, const std::map<std::string, std::string>& secrets,
                    const std::function<void(const std::string&)>& take);

std::string percent_decoded(std::string_view text);  ///< keeps what is not an escape
std::string percent_encoded(std::string_view text);  ///< all but the unreserved characters of RFC 3986
std::string to_base64(std::string_view bytes);

}  // namespace driftd::ipc
