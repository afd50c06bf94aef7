// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "sinks/common/chat/message.hpp"
#include "sinks/common/chat/settings.hpp"

namespace driftd::sinks {

/// Where in a template a text stands.
struct ChatPlace {
  std::string_view type;  ///< member `type` of the map that holds it; empty: it has none
  std::string_view key;   ///< name of the member
};

/// How a format treats values.
struct ChatRules {
  /// Returns the value of a field as it may stand there.
  std::function<std::string(const std::string& value, const ChatPlace& place)> escape;
  bool numbers = false;  ///< a text that is one field, whose value is a number, is a number
};

/// Fills a template in with the first `listed` drifts of a message. Pure.
core::Value fill(const ChatNode& layout, const ChatMessage& message, std::size_t listed, const ChatRules& rules);

}  // namespace driftd::sinks
