// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "core/ports/sink.hpp"
#include "sinks/file/settings.hpp"

namespace driftd::sinks {

/// One line of CloudEvents JSON per event, in a file (durable by flush()) or on stdout. Writes run on `io`, one after
/// the other.
std::unique_ptr<core::Sink> open_file(std::string name, FileSettings settings, asio::any_io_executor io);

}  // namespace driftd::sinks
