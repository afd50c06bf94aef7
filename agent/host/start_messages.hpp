// SPDX-License-Identifier: Apache-2.0
// The first two messages to a worker: which plugin to load into which jail, and which instance to open.
#pragma once

#include "host/call.hpp"
#include "host/host.hpp"
#include "host/jail_paths.hpp"
#include "host/supervisor_spec.hpp"
#include "ipc/messages.hpp"

namespace driftd::host {

ipc::Load make_load(const SupervisorSpec& spec, const HostOptions& options, const JailPaths& paths);
ipc::Open make_open(const core::SessionSpec& session, Steady::time_point deadline);

}  // namespace driftd::host
