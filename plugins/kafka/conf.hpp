// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <librdkafka/rdkafka.h>
#include <memory>

#include "driftd/sdk/call.hpp"
#include "kafka/settings.hpp"

namespace driftd::kafka {

using Conf = std::unique_ptr<rd_kafka_conf_t, decltype(&rd_kafka_conf_destroy)>;

/// The library's configuration for these settings. Throws sdk::Failure INVALID with the setting's name.
Conf make_conf(sdk::Call& call, const Settings& settings);

/// When a bearer token ends and whose it is, from its claims `exp` and `sub`; without exp: an hour from `now_ms`.
struct BearerClaims {
  std::int64_t until_ms = 0;
  std::string subject;
};
/// Throws sdk::Failure INVALID when it is not a JWT.
BearerClaims claims_of(const std::string& token, std::int64_t now_ms);

/// Overwrites a secret before its memory is given back.
void wipe(std::string& secret);

}  // namespace driftd::kafka
