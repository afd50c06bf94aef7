// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "core/event/event.hpp"
#include "core/value/value.hpp"

namespace driftd::core {

/// Returns a registration as GetBackend shows it: redacted, and with the settings in config_json as {"<type>":{…}}
/// under the RFC's names (`kafka.brokers`, `redis.host`), where it has one; other settings keep their names.
/// `credentials` of the backend take the place of driftd's own login. References such as `${file:/run/secrets/kafka}`
/// stay; secrets are never in it.
BackendSnapshot shown_backend(BackendSnapshot registration);

/// Returns a registration (canonical JSON) as events carry it in config_json: what has settings as shown_backend()
/// shows it. The registration of a discovered backend is returned as it is: it has the RFC's names already.
std::string event_config(const std::string& type, const std::string& registration);

/// Returns a registration with its fields under the RFC's names, for the paths of changed_fields:
/// `config.kafka.brokers`, `metadata.region`. Returns `corrupt` if it is not a JSON object.
Result<Value> registration_fields(const std::string& type, const std::string& registration);

}  // namespace driftd::core
