// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "base/clock.hpp"
#include "config/config.hpp"
#include "core/ports/session.hpp"
#include "core/ports/sink.hpp"
#include "sinks/common/chat/message.hpp"

namespace driftd::app {

/// Creates the sink that a spec describes. It is neither started nor connected. `invalid` names the setting, what was
/// expected and what was found. `links` makes those of its messages; empty: they have none.
Result<std::unique_ptr<core::Sink>> make_sink(const config::SinkSpec& spec, asio::any_io_executor core,
                                              asio::any_io_executor io, const Clock& clock,
                                              sinks::ChatLinkMaker links = {});
/// The same for `type: plugin`, whose worker runs in a session of `sessions`. `found` is the result of its last scan.
Result<std::unique_ptr<core::Sink>> make_plugin_sink(const config::SinkSpec& spec, asio::any_io_executor core,
                                                     std::shared_ptr<core::SessionFactory> sessions,
                                                     const std::vector<core::SessionFactory::ScanResult>& found);
bool is_plugin_sink(const config::SinkSpec& spec);

}  // namespace driftd::app
