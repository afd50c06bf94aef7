// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace driftd::redis {

/// Key patterns sorted, in one spelling: `allkeys` is `~*`, `%RW~x` and the pair `%R~x %W~x` are `~x`, and `~*` covers
/// every other.
std::vector<std::string> normal_keys(const std::vector<std::string>& patterns);

/// Channel patterns sorted: `allchannels` is `&*`, which covers every other.
std::vector<std::string> normal_channels(const std::vector<std::string>& patterns);

}  // namespace driftd::redis
