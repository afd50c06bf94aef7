// SPDX-License-Identifier: Apache-2.0
// Texts of librdkafka and of brokers, with what an operator can do.
#pragma once

#include <librdkafka/rdkafka.h>
#include <string>

#include "core/ports/sink.hpp"
#include "sinks/kafka/settings.hpp"

namespace driftd::sinks {

inline constexpr std::size_t kErrorTextBytes = 512;  ///< size of a buffer for an error text of the library

/// Returns a text of the library or of a broker on one line, without our secrets.
std::string shown(std::string text, const KafkaSettings& settings);

/// Returns `Kafka at HOST:PORT, topic NAME: TEXT` with a remedy. `text` may be empty: the library's own is used.
std::string describe_failure(rd_kafka_resp_err_t error, const std::string& text, const KafkaSettings& settings);
/// Returns the same as an error.
Error failure(rd_kafka_resp_err_t error, const std::string& text, const KafkaSettings& settings);

/// Returns what a negative answer to one record means for its event.
core::Attempt::Outcome classify_failure(rd_kafka_resp_err_t error);
/// Returns true if the topic or partition is not what it was at the last check.
bool is_topic_gone(rd_kafka_resp_err_t error);
/// Returns true if another producer took over the transactional id.
bool is_fenced(rd_kafka_resp_err_t error);

}  // namespace driftd::sinks
