// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/executors.hpp"
#include "config/config.hpp"
#include "host/host.hpp"

namespace driftd::app {

/// Returns where plugins, their worker and the plugin lock are, as configured.
host::HostOptions host_options(const config::Config& config, Executors& executors);

}  // namespace driftd::app
