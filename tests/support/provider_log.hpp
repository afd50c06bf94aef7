// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace driftd::test {

/// Returns what the providers in ProviderProbes of this process logged since the last call, as `LEVEL text`. LEVEL is
/// the number of the ABI.
std::vector<std::string> take_provider_log();

}  // namespace driftd::test
