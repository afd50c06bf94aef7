// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "driftd/sdk/secret_text.hpp"

namespace driftd::common {

/// Returns an address without user, password, query and fragment, which may hold credentials. `url` is one address and
/// nothing else; its scheme may be missing. Pure.
inline std::string shown_url(std::string_view url) {
  if (url.find("://") != url.npos) return sdk::without_credentials(url);
  return sdk::without_credentials("any://" + std::string(url)).substr(6);
}

}  // namespace driftd::common
