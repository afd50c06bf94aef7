// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "core/ports/sink.hpp"
#include "core/ports/subscriptions.hpp"
#include "grpc/settings.hpp"

namespace driftd::rpc {

/// Returns `invalid` if the text is not HOST:PORT, `denied` if no entry of grpc.callbacks.allow matches it, and names
/// both.
Status check_endpoint(const Settings& settings, const std::string& endpoint);

/// Opens a sink that calls driftd.v1.BackendEventCallback/Notify at the subscription's endpoint for each event of its
/// types, and settles others without a call: over TLS, or without it to loopback with allow_plain_loopback. Retried as
/// a webhook. Files of the settings are followed. Core thread.
Result<std::unique_ptr<core::Sink>> open_callback(const core::Subscription& subscription, const Settings& settings,
                                                  asio::any_io_executor core);

}  // namespace driftd::rpc
