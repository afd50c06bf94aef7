// SPDX-License-Identifier: Apache-2.0
// In which other forms a secret may appear in a text. The Scrubber (text.hpp) looks for all of them. Pure; any thread.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/value/value.hpp"

namespace driftd::ipc {

/// The parts of a longer text that are secret. They are as they stand in it, not percent-decoded.
struct SecretParts {
  std::vector<std::string> secrets;  ///< passwords, and values of a query from 6 bytes on
  std::vector<std::string> pairs;    ///< `user:password`, which HTTP sends in base64
};
/// Finds them in each URL of the text (user-info and query), and behind the first `password=`, as in a connection
/// string of Postgres. Both lists are empty if there are none.
SecretParts secret_parts(std::string_view text);

/// Calls `take` with `user:password` for each object of the settings, at any depth, that names a user (`username` or
/// `user`) beside a secret. `secrets` is token → bytes; the settings hold the tokens.
void for_each_login(const core::Value& settings, const std::map<std::string, std::string>& secrets,
                    const std::function<void(const std::string&)>& take);

std::string percent_decoded(std::string_view text);  ///< keeps what is not an escape
std::string percent_encoded(std::string_view text);  ///< all but the unreserved characters of RFC 3986
std::string to_base64(std::string_view bytes);       ///< RFC 4648, 4: with padding

}  // namespace driftd::ipc
