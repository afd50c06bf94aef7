// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "driftd/sdk/secret_text.hpp"

namespace driftd::common {

/// An address as it may be shown: without user, password, query and fragment, which hold what opens the door. `url` is
/// one address and nothing else, so its scheme may be missing. Pure.
inline std::string shown_url(std::string_view url) {
  if (url.find("://") != url.npos) return sdk::without_credentials(url);
  return sdk::without_credentials("any://" + std::string(url)).substr(6);
}

}  // namespace driftd::common
