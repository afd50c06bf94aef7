// SPDX-License-Identifier: Apache-2.0
// The first two messages to a worker: which plugin to load into which jail, and which instance to open.
#pragma once

#include "host/call.hpp"
#include "host/host.hpp"
#include "host/jail_paths.hpp"
#include "host/supervisor_spec.hpp"
#include "ipc/messages.hpp"

namespace driftd::host {

/// `paths` is what the settings open in the jail; without effect on an in-process session, which has none.
ipc::Load make_load(const SupervisorSpec& spec, const HostOptions& options, const JailPaths& paths);
/// Contains the secrets of the backend and its redaction key: a worker process gets them only here, when it is in its
/// jail.
ipc::Open make_open(const core::SessionSpec& session, Steady::time_point deadline);

}  // namespace driftd::host
