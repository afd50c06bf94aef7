// SPDX-License-Identifier: Apache-2.0
// What the files that write and read columns of JSON text share. Only texts, counts and times pass through it: no
// number that is compared.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "base/result.hpp"

namespace driftd::store {

/// Bytes that are not UTF-8 become U+FFFD.
inline std::string dump(const nlohmann::json& json) {
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

inline tl::unexpected<Error> corrupt_column(const std::string& expected) {
  return fail(Code::corrupt, "store: a column holds no " + expected + "; restore the store from a backup");
}

}  // namespace driftd::store
