// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "core/ports/sink.hpp"
#include "sinks/nats/settings.hpp"

namespace driftd::sinks {

/// Opens a NATS sink, by default JetStream: an event is delivered once the stream has acknowledged it. Callbacks on the
/// library's threads only post to `core`; blocking calls run on `io`. Returns `invalid` for settings that nats.c
/// refuses.
Result<std::unique_ptr<core::Sink>> open_nats(std::string name, NatsSettings settings, asio::any_io_executor core,
                                              asio::any_io_executor io);

}  // namespace driftd::sinks
