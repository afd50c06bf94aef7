// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace driftd::test {

/// What providers in ProviderProbes of this process logged since the last time this was asked: `LEVEL text`, the level
/// as the ABI counts it.
std::vector<std::string> take_provider_log();

}  // namespace driftd::test
