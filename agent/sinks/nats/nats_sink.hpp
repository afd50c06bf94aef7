// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "core/ports/sink.hpp"
#include "sinks/nats/settings.hpp"

namespace driftd::sinks {

/// NATS, by default JetStream: delivered is what the stream has acknowledged. Callbacks of the library's threads only
/// post to `core`; calls that block run on `io`. `invalid`: settings that nats.c refuses.
Result<std::unique_ptr<core::Sink>> open_nats(std::string name, NatsSettings settings, asio::any_io_executor core,
                                              asio::any_io_executor io);

}  // namespace driftd::sinks
