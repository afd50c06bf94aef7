// SPDX-License-Identifier: Apache-2.0
// JSON for a receiver that is a program: values as they are.
#include "sinks/common/chat/format.hpp"

namespace driftd::sinks {

ChatDialect generic_dialect() {
  ChatDialect out;
  out.rules.escape = [](const std::string& value, const ChatPlace&) { return value; };
  out.rules.numbers = true;
  out.cut = [](core::Value&) { return true; };
  out.excess = [](const core::Value&, const std::string&) { return std::string(); };
  return out;
}

}  // namespace driftd::sinks
