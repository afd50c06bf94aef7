// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "base/clock.hpp"
#include "core/ports/sink.hpp"
#include "sinks/common/chat/message.hpp"
#include "sinks/webhook/http.hpp"
#include "sinks/webhook/settings.hpp"

namespace driftd::sinks {

/// What a webhook needs of the agent. The clock must outlive it.
struct WebhookNeeds {
  asio::any_io_executor core, io;
  const Clock* clock = nullptr;
  ChatLinkMaker links{};  ///< empty: its messages have no links
};

/// Opens a sink that POSTs each event as CloudEvents structured JSON with a Standard Webhooks signature. Returns
/// `invalid` for a bad URL, secret or CIDR. Its stop() waits on `io` for a resolver that does not answer. `clock` must
/// outlive the sink.
Result<std::unique_ptr<core::Sink>> open_webhook(std::string name, WebhookSettings settings, WebhookNeeds needs);
/// The same without links.
Result<std::unique_ptr<core::Sink>> open_webhook(std::string name, WebhookSettings settings, asio::any_io_executor core,
                                                 asio::any_io_executor io, const Clock& clock);

/// Returns what an answer means for the event. `refusals`: how often this event got a 400, 413, 415 or 422 before.
core::Attempt attempt_of(const std::string& sink, const HttpAnswer& answer, int refusals);

}  // namespace driftd::sinks
