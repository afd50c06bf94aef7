// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "operator_world.hpp"

namespace driftd::test {

/// A cluster in which the real Helm installs small charts that are called as the well-known ones.
struct HelmWorld : OperatorWorld {
  /// A chart of one Service and, unless `key` is empty, one Secret. In names, FULL is the chart's full name.
  struct Chart {
    std::string name, service;
    int port = 0;
    std::string secret{}, key{};
    std::string value = "supersecret";
  };
  static Chart redis() { return {"redis", "FULL-master", 6379, "FULL", "redis-password"}; }

  std::string folder(const Chart& chart) const;
  void install(const std::string& release, const Chart& chart, const std::string& space = "infrastructure",
               const std::vector<std::string>& more = {}) const;
  void uninstall(const std::string& release, const std::string& space = "infrastructure") const;
};

}  // namespace driftd::test
