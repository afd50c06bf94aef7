// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/task.hpp"
#include "core/audit.hpp"
#include "core/event/event.hpp"

namespace driftd::core {

/// A backend of the registry, and where it comes from.
struct RegisteredBackend {
  BackendSnapshot snapshot;        ///< config_json is the registration, not redacted yet
  std::string source, defined_at;  ///< as in BackendView
  std::string etag;                ///< of a manual backend: what a change of it names; empty for others
};

/// A call that changes a manual backend.
struct ManualCall {
  std::string name;        ///< of remove(); else the definition has it
  std::string definition;  ///< JSON object with the keys of one item of `backends:`
  std::string etag;        ///< what the caller saw; empty: whatever it is
  std::string actor;
  Caller caller;
};

/// What became of it.
struct ManualAnswer {
  enum class Refusal {
    none,
    exists,         ///< register_backend(): another backend has the name
    other_source,   ///< it is from the configuration or was discovered, so it cannot be changed here
    no_plugin,      ///< no plugin for its provider is installed, so its settings cannot be checked
    etag_mismatch,  ///< it changed since the caller saw it
  };
  Refusal refusal = Refusal::none;
  std::string why;            ///< of a refusal: what, where, next step
  bool existed = true;        ///< remove(): false if there was none
  RegisteredBackend backend;  ///< as it is now; empty after remove()
};

/// The part of the registry that callers of gRPC may change: manual backends. Changes are made one after the other.
/// Each is durable, with its event and its line of the audit log, before it is answered; the same call again finds it
/// done. Fails with `denied` if manual backends are off or not allowed, `invalid` if the definition is wrong,
/// `not_found` if there is no such backend, `budget` if there are too many, else with the error of the store. Core
/// thread.
class ManualBackends {
 public:
  virtual ~ManualBackends() = default;
  virtual Task<Result<ManualAnswer>> register_backend(ManualCall call) = 0;
  virtual Task<Result<ManualAnswer>> update_backend(ManualCall call) = 0;
  virtual Task<Result<ManualAnswer>> delete_backend(ManualCall call) = 0;
};

}  // namespace driftd::core
