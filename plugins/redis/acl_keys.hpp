// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace driftd::redis {

/// Returns the sorted key patterns in one spelling: `allkeys` is `~*`, `%RW~x` and the pair `%R~x %W~x` are `~x`, and
/// `~*` covers every other pattern.
std::vector<std::string> normal_keys(const std::vector<std::string>& patterns);

/// Returns the sorted channel patterns: `allchannels` is `&*`, which covers every other pattern.
std::vector<std::string> normal_channels(const std::vector<std::string>& patterns);

}  // namespace driftd::redis
