// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <librdkafka/rdkafka.h>
#include <memory>

#include "driftd/sdk/call.hpp"
#include "kafka/settings.hpp"

namespace driftd::kafka {

using Conf = std::unique_ptr<rd_kafka_conf_t, decltype(&rd_kafka_conf_destroy)>;

/// Returns the library's configuration for these settings. Throws INVALID with the name of the setting.
Conf make_conf(sdk::Call& call, const Settings& settings);

/// Expiry and owner of a bearer token, from its claims `exp` and `sub`; without `exp` it expires one hour after
/// `now_ms`.
struct BearerClaims {
  std::int64_t until_ms = 0;  ///< since the epoch
  std::string subject;        ///< claim `sub`
};
/// Throws INVALID if the token is not a JWT.
BearerClaims claims_of(const std::string& token, std::int64_t now_ms);

/// Overwrites a secret before its memory is freed.
void wipe(std::string& secret);

}  // namespace driftd::kafka
