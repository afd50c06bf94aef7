// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <librdkafka/rdkafka.h>
#include <memory>
#include <string>

#include "base/result.hpp"
#include "sinks/kafka/settings.hpp"

namespace driftd::sinks {

struct FreeConf {
  void operator()(rd_kafka_conf_t* c) const { rd_kafka_conf_destroy(c); }
};
using Conf = std::unique_ptr<rd_kafka_conf_t, FreeConf>;

/// Returns the library's configuration of a producer or of a consumer for reading back. `settings` must live as long as
/// the client that is made of it. Returns `invalid` if the library refuses a setting; the error contains no secret.
Result<Conf> producer_conf(const KafkaSettings& settings, const std::string& name, std::size_t batch_bytes);
Result<Conf> reader_conf(const KafkaSettings& settings, const std::string& name);

}  // namespace driftd::sinks
