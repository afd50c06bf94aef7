// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "core/event/event.hpp"

namespace driftd::rpc {

/// Returns a registration as GetBackend shows it: redacted, and with the settings in config_json as {"<type>":{…}}
/// under the RFC's names (`kafka.brokers`, `redis.host`), where it has one; other settings keep their names.
/// `credentials` of the backend take the place of driftd's own login. References such as `${file:/run/secrets/kafka}`
/// stay; secrets are never in it.
core::BackendSnapshot shown_backend(core::BackendSnapshot registration);

}  // namespace driftd::rpc
