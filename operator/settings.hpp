// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "controller/settings.hpp"
#include "kube/connection.hpp"
#include "operator/agent_registry.hpp"
#include "operator/backend_status.hpp"
#include "operator/lease.hpp"

namespace driftd::op {

struct Settings {
  kube::Connection connection;
  std::string space;     ///< the operator's own namespace, that of its Lease
  std::string identity;  ///< of this process
  bool elects = true;    ///< false: it acts without a lease; never run two then
  std::string lease = "driftd-operator";
  LeaseTimes lease_times;
  std::optional<AgentAccess> agent;
  Limits limits;
  bool discovers_releases = true;  ///< makes PrismBackends of Helm releases
  bool deploys_patterns = true;    ///< makes Deployments of PrismPatterns
  controller::Settings controllers;
  std::string listen;  ///< `HOST:PORT` of metrics and probes; empty: none
  std::string log_level = "info", log_format = "text";
};

/// Reads the command line. Returns the settings, or the exit code if there is nothing to run: 0 after --help, 2 after a
/// mistake, which was printed.
struct CommandLine {
  std::optional<Settings> settings;
  int exit_code = 0;
};
CommandLine read_command_line(int argc, const char* const* argv);

}  // namespace driftd::op
