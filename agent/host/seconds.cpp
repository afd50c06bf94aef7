// SPDX-License-Identifier: Apache-2.0
#include "host/seconds.hpp"

#include <fmt/format.h>

namespace driftd::host {

std::string render_seconds(std::chrono::milliseconds t) {
  if (t.count() >= 1000) t = (t + std::chrono::milliseconds(50)) / 100 * 100;
  if (t.count() % 1000 == 0) return fmt::format("{} s", t.count() / 1000);
  if (t.count() > 1000) return fmt::format("{:.1f} s", static_cast<double>(t.count()) / 1000);
  return fmt::format("{} ms", t.count());
}

}  // namespace driftd::host
