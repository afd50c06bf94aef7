// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "core/audit.hpp"
#include "core/backend.hpp"

namespace driftd::engine {

/// One change of the registry: a backend to register or to change, or one to unregister.
struct RegistryChange {
  core::BackendSpec spec;                              ///< what it shall be; of one that leaves only the name counts
  core::BackendEdit edit = core::BackendEdit::reopen;  ///< what the change needs; `reopen` also for a new backend
  bool leaves = false;
  std::string cause = {};                    ///< of the DELETED event; empty: `configuration`
  std::vector<core::AuditEntry> audit = {};  ///< committed with the change
};

}  // namespace driftd::engine
