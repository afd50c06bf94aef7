// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "config/config.hpp"
#include "host/host.hpp"

namespace driftd::app {

/// Where plugins, their worker and their pins are, as configured.
host::HostOptions host_options(const config::Config& config, asio::any_io_executor core);

}  // namespace driftd::app
