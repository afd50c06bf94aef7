// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "driftd/consumer/result.hpp"
#include "driftd/consumer/secret.hpp"

namespace driftd::consumer {

/// A backend as its source describes it. Secrets are references, or apart in `clear`.
struct Backend {
  std::string name, type;
  std::string endpoint;            ///< `host:port`, or several with commas between them; may be empty
  std::string config_json = "{}";  ///< a JSON object without user name, password and token
  std::vector<std::string> capabilities;
  std::map<std::string, std::string> metadata;
  std::map<std::string, std::string> credentials;  ///< member (`password`) → reference (`k8s:shop/cache#password`)
  std::map<std::string, Secret> clear;             ///< member → value, where the source has values itself
  bool provisional = false;                        ///< the source has no better answer now: it is asked again soon
  bool operator==(const Backend&) const = default;
};

/// What a slot connects with: a backend whose credentials are values.
struct SlotConfig {
  Backend backend;
  std::map<std::string, Secret> credentials;  ///< `username`, `password`, …
  std::string host() const;                   ///< of the first endpoint, without brackets; empty if there is none
  int port() const;                           ///< of the first endpoint; 0 if it has none
  const Secret& credential(const std::string& member) const;  ///< empty if there is none
  bool operator==(const SlotConfig&) const = default;
};

/// Where the descriptions of backends come from: a file, or driftd's GetBackend. Implementations are called from
/// several threads at once and end within a time of their own.
class BackendSource {
 public:
  virtual ~BackendSource() = default;
  /// Returns the description of `backend` for `slot`. `not_found` if the source has none; `unavailable`: retry.
  virtual Result<Backend> get(const std::string& backend, const std::string& slot) = 0;
  /// True if two slots of one backend may get different descriptions.
  virtual bool differs_by_slot() const = 0;
  /// True if an answer is never older than an event that was received before the call. If false, an endpoint that an
  /// event announced is used in place of the one that the source still has.
  virtual bool follows_events() const = 0;
};

/// Reads the RFC's file: an object of slot → {`type`, `config`, `capabilities`}, and of our own `backend`, `endpoint`,
/// `credentials`, `metadata`. An entry may be named by the slot or, for all slots of a backend, by the backend. The
/// file is read for each call, so an edit is seen with the next event. Empty path: $BACKEND_CONFIG_PATH, or else
/// /config/backends.json. Up to 4 MiB.
std::unique_ptr<BackendSource> file_source(std::string path = {});

}  // namespace driftd::consumer
