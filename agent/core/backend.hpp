// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/event/event.hpp"
#include "core/judge/rules.hpp"
#include "core/ports/session.hpp"

namespace driftd::core {

/// Who speaks of a backend's registration: a source (the name of its backend), and where in it the objects are that
/// define the backend. Of the config: who is believed.
struct Registrar {
  std::string source;
  std::string name_space;  ///< empty: the source has no such places; of the config: anywhere in it
  friend auto operator<=>(const Registrar&, const Registrar&) = default;
};

/// One backend as registered: what the engine runs and what the registry remembers. Immutable; replaced on reload.
struct BackendSpec {
  std::string name;
  std::string was;       ///< its former name: the row is renamed, uid and state stay
  std::string provider;  ///< plugin id or backend type (aliases allowed: `postgresql`), or the absolute path of a .so
  std::string type;      ///< canonical; empty: as `provider` says
  std::string endpoint;  ///< canonical, for people and events; may be empty
  std::string settings_json;                   ///< sensitive values are tokens
  std::map<std::string, std::string> secrets;  ///< token → bytes; never logged
  std::vector<RedactRule> redact;              ///< the config's `redact`: its own, then that of the defaults
  std::string registration_json;               ///< canonical, secrets as references; a change is an UPDATED event
  std::map<std::string, std::string> labels;
  std::vector<std::string> patterns, capabilities;
  std::map<std::string, std::string> metadata;  ///< goes into its events
  std::string discovered_by;  ///< the backend whose provider found it: it is registered, not read; empty: the config
  std::vector<Registrar> spoken_by;            ///< believed about it; nobody else is (ADR 0015)
  bool discover = true;                        ///< what its own provider discovers is registered
  std::chrono::milliseconds interval{30'000};  ///< staleness promise (semantics 17)
  SessionSpec::Isolation isolation = SessionSpec::Isolation::process;
  Budgets budgets;
  std::shared_ptr<const Rules> rules;
};

}  // namespace driftd::core
