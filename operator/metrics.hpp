// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

#include "controller/metrics.hpp"

namespace driftd::op {

/// What the operator shows. The names are those of the resource-watcher RFC, behind `driftd_operator_`.
struct OperatorMetrics {
  bool leads = false, agent_connected = false, has_agent = false;
  std::map<std::string, std::string> faults;                         ///< types that cannot be followed, with the reason
  std::map<std::string, controller::ControllerMetrics> controllers;  ///< by kind: `PrismBackend`, `HelmRelease`
  controller::WatcherMetrics watcher;                                ///< of PrismBackends
  controller::SchedulerMetrics scheduler;
};

/// Prometheus text, version 0.0.4.
std::string render(const OperatorMetrics& metrics);

}  // namespace driftd::op
