// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/enforce/settings.hpp"
#include "core/judge/rules.hpp"
#include "core/ports/session_spec.hpp"

namespace driftd::core {

/// Who reports a backend's registration: a source (the name of its backend) and the place in it, such as a namespace,
/// of the objects that define the backend. In the config (`spoken_by`): whose reports are accepted.
struct Registrar {
  std::string source;
  std::string name_space;  ///< empty if the source has no such places; in the config: any place
  friend auto operator<=>(const Registrar&, const Registrar&) = default;
};

/// One registered backend: what the engine runs and what the registry stores. Immutable; replaced on reload.
struct BackendSpec {
  std::string name;
  std::string was;       ///< its former name, if it was renamed: the row gets the new name and keeps uid and state
  std::string provider;  ///< plugin id or backend type (aliases allowed: `postgresql`), or the absolute path of a .so
  std::string type;      ///< canonical; empty if it is the same as `provider`
  std::string endpoint;  ///< canonical, for people and events; may be empty
  std::string settings_json;                   ///< sensitive values are tokens
  std::map<std::string, std::string> secrets;  ///< token → bytes; never logged
  std::vector<RedactRule> redact;  ///< the config's `redact`: the backend's own rules, then those of the defaults
  std::string registration_json;   ///< canonical, secrets as references; a change is an UPDATED event
  std::string credentials_json;    ///< logins of applications, as references; `null`: none of their own
  std::map<std::string, std::string> labels;
  std::vector<std::string> patterns, capabilities;
  std::map<std::string, std::string> metadata;  ///< copied into its events
  /// Where it is defined: `driftd.yaml:14:5`, or for a manual backend who registered it. Empty if it was discovered.
  std::string defined_at;
  /// Of a manual backend, which was registered by gRPC: one item of `backends:` as canonical JSON, with references as
  /// written. Empty if the backend is from the config, or was discovered.
  std::string definition;
  std::string fault;          ///< why a manual backend cannot be read at present; empty: it can
  std::string discovered_by;  ///< the backend that discovered this one (registered, not read); empty if from the config
  std::vector<Registrar> spoken_by;            ///< whose reports about its registration are accepted (ADR 0015)
  bool discover = true;                        ///< register what its own provider discovers
  std::chrono::milliseconds interval{30'000};  ///< maximum age of an observation (semantics 17)
  SessionSpec::Isolation isolation = SessionSpec::Isolation::process;
  Budgets budgets;
  EnforceSettings enforce;
  std::shared_ptr<const Rules> rules;
};

/// What a change of a backend's spec needs: nothing; other rules, interval or registration, while its session goes on;
/// or another session.
enum class BackendEdit { none, in_place, reopen };

}  // namespace driftd::core
