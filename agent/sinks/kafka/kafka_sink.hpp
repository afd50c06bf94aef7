// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "core/ports/sink.hpp"
#include "sinks/kafka/settings.hpp"

namespace driftd::sinks {

/// Opens a Kafka sink: an event is delivered once all replicas in sync have its record, or its transaction is
/// committed. Delivery reports are handled on `core`; blocking calls run on `io`. Returns `invalid` without servers or
/// topic.
Result<std::unique_ptr<core::Sink>> open_kafka(std::string name, KafkaSettings settings, asio::any_io_executor core,
                                               asio::any_io_executor io);

}  // namespace driftd::sinks
