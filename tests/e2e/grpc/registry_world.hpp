// SPDX-License-Identifier: Apache-2.0
// A client of BackendRegistry, and an agent whose registry it may change.
#pragma once

#include "support/redis.hpp"
#include "world.hpp"

namespace driftd::test {

/// The answer of one call.
struct Changed {
  grpc::Status status;
  v1::Backend backend;
  bool existed = false;  ///< of DeleteBackend
  bool ok() const { return status.ok(); }
  grpc::StatusCode code() const { return status.error_code(); }
};

class GrpcRegistry : public GrpcLine {
 protected:
  /// An agent that allows files of this test's folder as references.
  Agent registrar(const std::string& sinks = {}) const {
    return agent("  heartbeat: 1s\n  register: { references: [\"file:" + dir_.file("secrets") + "/*\"] }\n", sinks);
  }
  v1::BackendDefinition redis(const std::string& name, const std::string& secret) const;
  static v1::BackendDefinition terraform(const std::string& name, const std::string& path,
                                         const std::string& team = {});
  std::string secret(const std::string& name, const std::string& text) { return dir_.write("secrets/" + name, text); }

  /// `wait`: until the agent serves. Without, a call to an agent that is gone fails as UNAVAILABLE.
  Changed add(const v1::BackendDefinition& definition, bool wait = true) const;
  Changed update(const v1::BackendDefinition& definition, const std::string& etag = {}, bool wait = true) const;
  Changed remove(const std::string& name, const std::string& etag = {}, bool wait = true) const;
  std::optional<v1::Backend> get(const std::string& name) const;
  std::vector<v1::Backend> list() const;

  RedisServer server_;
};

/// Returns `created manual` for each event about the backend itself, in order.
std::vector<std::string> registrations(const std::vector<Event>& events, const std::string& backend);

}  // namespace driftd::test
