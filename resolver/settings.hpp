// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "driftd/consumer/agent.hpp"
#include "resolver/bindings.hpp"

namespace driftd::resolver {

struct Settings {
  std::vector<Binding> bindings;
  std::string output = "/config/backends.json";
  std::optional<consumer::AgentAccess> agent;  ///< needed by bindings to backends of the registry
  consumer::ResolvedBy resolved_by = consumer::ResolvedBy::application;
  consumer::KubeAccess kube;
  std::string service_bindings;                ///< $SERVICE_BINDING_ROOT; empty: none
  std::string space;                           ///< namespace of the Secrets that bindings name
  std::chrono::milliseconds timeout{60'000};   ///< the init container waits so long for all required bindings
  bool follow = false;                         ///< keeps the file true until it is stopped
  std::chrono::milliseconds interval{10'000};  ///< everything is resolved again, without an event
  std::string log_level = "info", log_format = "text";
};

/// Reads the command line and the environment. Returns the settings, or the exit code if there is nothing to run: 0
/// after --help, 2 after a mistake, which was printed.
struct CommandLine {
  std::optional<Settings> settings;
  int exit_code = 0;
};
CommandLine read_command_line(int argc, const char* const* argv);

}  // namespace driftd::resolver
