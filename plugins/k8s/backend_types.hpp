// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

namespace driftd::k8s {

/// Maximum bytes of the name of a type, which may be one that is not in the table. It is the host's limit.
inline constexpr std::size_t kMaxType = 253;

/// A type of backend with a usual port. `alias` is another name that definitions use for it, or its name.
struct BackendType {
  const char *name, *alias;
  std::int64_t port;
};
inline constexpr std::array<BackendType, 9> kBackendTypes = {{{"kafka", "kafka", 9092},
                                                              {"nats", "nats", 4222},
                                                              {"redis", "redis", 6379},
                                                              {"postgres", "postgresql", 5432},
                                                              {"mysql", "mysql", 3306},
                                                              {"mongodb", "mongodb", 27017},
                                                              {"rabbitmq", "rabbitmq", 5672},
                                                              {"elasticsearch", "elasticsearch", 9200},
                                                              {"memcached", "memcached", 11211}}};

/// Returns the name of the type that has this alias; any other text stays as it is.
inline std::string canonical_type(const std::string& type) {
  for (const auto& known : kBackendTypes) {
    if (type == known.alias) return known.name;
  }
  return type;
}

/// Returns true if the text is a type of the table or its alias.
inline bool is_backend_type(const std::string& type) {
  for (const auto& known : kBackendTypes) {
    if (type == known.name || type == known.alias) return true;
  }
  return false;
}

/// Returns the types as a PrismBackend names them: `kafka, nats, …`.
inline std::string backend_type_names() {
  std::string out;
  for (const auto& known : kBackendTypes) out += (out.empty() ? "" : ", ") + std::string(known.alias);
  return out;
}

/// Returns the usual port of a type; 0 if it has none.
inline std::int64_t default_port(const std::string& type) {
  for (const auto& known : kBackendTypes) {
    if (type == known.name) return known.port;
  }
  return 0;
}

}  // namespace driftd::k8s
