// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.hpp"

namespace driftd {

/// Loads libcurl, which brings 30 libraries and 3.4 MiB with it: into an agent that has a webhook, and into commands
/// that ask an agent; into no other process. Returns `unavailable`, with the reason of the loader, if it is not
/// installed. The curl_… functions of this room may be called after it; before it they end the process with that
/// reason. Any thread, any number of times.
Status load_curl();

}  // namespace driftd
