// SPDX-License-Identifier: Apache-2.0
#include "operator/times.hpp"

#include <fmt/chrono.h>

namespace driftd::op {

using std::chrono::floor;
using std::chrono::system_clock;

std::string time_now() {
  return fmt::format("{:%FT%T}Z",
                     fmt::gmtime(system_clock::to_time_t(floor<std::chrono::seconds>(system_clock::now()))));
}

std::string micro_time_now() {
  const auto now = floor<std::chrono::microseconds>(system_clock::now());
  const auto seconds = floor<std::chrono::seconds>(now);
  return fmt::format("{:%FT%T}.{:06}Z", fmt::gmtime(system_clock::to_time_t(seconds)), (now - seconds).count());
}

}  // namespace driftd::op
