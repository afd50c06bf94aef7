// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "base/clock.hpp"
#include "core/ports/sink.hpp"
#include "sinks/webhook/http.hpp"
#include "sinks/webhook/settings.hpp"

namespace driftd::sinks {

/// POSTs each event as CloudEvents structured JSON under a Standard Webhooks signature. `invalid`: URL, secret or CIDR.
/// `io` is where its end waits for a resolver that does not answer. `clock` outlives the sink.
Result<std::unique_ptr<core::Sink>> open_webhook(std::string name, WebhookSettings settings, asio::any_io_executor core,
                                                 asio::any_io_executor io, const Clock& clock);

/// What an answer means for the event; `refusals`: how often this event got a 400, 413, 415 or 422 before.
core::Attempt attempt_of(const std::string& sink, const HttpAnswer& answer, int refusals);

}  // namespace driftd::sinks
