// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "sinks/common/chat/message.hpp"
#include "sinks/common/chat/settings.hpp"

namespace driftd::sinks {

/// Returns the body of a request, as JSON. What does not fit into the limits of the format is cut: first drifts from
/// the end of the list, which the message then counts (`and 37 more`), then texts, with `…`. Fails with `invalid` if
/// the template alone, without any drift, is over the limits. Pure.
Result<std::string> render_chat(const ChatSettings& settings, const ChatMessage& message);

/// Returns `invalid`, with what is too large, unless the template has room for a message.
Status check_room(const ChatSettings& settings);

}  // namespace driftd::sinks
