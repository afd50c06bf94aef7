// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

#include "controller/metrics.hpp"

namespace driftd::op {

/// What the operator shows. The names are those of the resource-watcher RFC, behind `driftd_operator_`.
struct OperatorMetrics {
  bool leads = false, agent_connected = false, has_agent = false;
  std::map<std::string, std::string> faults;  ///< types that cannot be followed, with the reason
  controller::WatcherMetrics watcher;
  controller::ControllerMetrics controller;
  controller::SchedulerMetrics scheduler;
};

/// Prometheus text, version 0.0.4. `kind` labels what belongs to one kind: `PrismBackend`.
std::string render(const OperatorMetrics& metrics, const std::string& kind);

}  // namespace driftd::op
