// SPDX-License-Identifier: Apache-2.0
// How a backend, or a part of its resources, leaves the agent: its open drifts are retired, because nobody will read
// them again.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/task.hpp"
#include "core/audit.hpp"
#include "core/ports/store.hpp"
#include "core/resource.hpp"

namespace driftd::engine {

class Ledger;
struct Context;

/// Retires all open drifts of these resources, one commit for each; `reason` is in the audit log and in the events.
/// The references must outlive the coroutine. Core thread.
Task<Status> retire(Context& context, Ledger& ledger, std::vector<core::ResourceId> open, std::string reason);

/// Drops what is stored of kinds that the provider does not describe any more, as after an upgrade that renamed one:
/// nobody will list them again, so their resources are neither read nor gone. Their open drifts are retired and their
/// rows deleted. Call it after a refresh of the current plugin that listed everything. It can be called again after any
/// failure. Core thread.
Task<Status> drop_former_kinds(std::shared_ptr<Context> context, Ledger& ledger);

/// Why a backend is unregistered.
struct Unregistration {
  std::string cause = {};                    ///< of the DELETED event; empty: the configuration or the discovery
  std::vector<core::AuditEntry> audit = {};  ///< written with the first commit
};

/// Unregisters a backend that has no runner, or whose runner has stopped: retires its open drifts, withdraws what it
/// declares of others, and commits its row as deleted with a DELETED event. The definition of a manual backend is
/// removed first, so that the next start finishes what a kill interrupts. Fails with `conflict` if a decision was
/// committed meanwhile; it can be called again after any failure. Core thread.
Task<Status> unregister_backend(std::shared_ptr<Context> context, core::BackendRow row, Unregistration why);

}  // namespace driftd::engine
