// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "driftd/consumer/pattern_runner.hpp"

namespace driftd::consumer {

using Log = std::function<void(LogLevel, const std::string&)>;

}  // namespace driftd::consumer
