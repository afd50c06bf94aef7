// SPDX-License-Identifier: Apache-2.0
// What a format demands of a message. Each has a file of its own.
#pragma once

#include <string>

#include "sinks/common/chat/fill.hpp"

namespace driftd::sinks {

/// The rules of one format.
struct ChatDialect {
  ChatRules rules;
  /// Cuts texts that are too long for their place, with `…`, and lists. Returns true if no list had to be cut.
  bool (*cut)(core::Value& body) = nullptr;
  /// Returns what is too large about the message as a whole. Empty: nothing is.
  std::string (*excess)(const core::Value& body, const std::string& json) = nullptr;
};

ChatDialect slack_dialect();
ChatDialect teams_dialect();
ChatDialect generic_dialect();

}  // namespace driftd::sinks
