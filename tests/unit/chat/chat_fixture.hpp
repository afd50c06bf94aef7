// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include "config/chat.hpp"
#include "core/value/value.hpp"
#include "proto/codec.hpp"
#include "sinks/common/chat/render.hpp"

namespace driftd::test {

using config::Report;
using core::Value;
using sinks::ChatFormat;
using sinks::ChatMessage;
using sinks::ChatSettings;

/// The built-in template of a format.
inline ChatSettings builtin(ChatFormat format) {
  Report report{"driftd.yaml", {}, {}, {}, {}};
  ChatSettings out = config::chat_settings(report, format, "");
  EXPECT_EQ(config::render(report.errors), "");
  return out;
}

/// A template of the test's own, which must be valid.
inline ChatSettings own(ChatFormat format, const std::string& text) {
  Report report{"own.yaml", {}, {}, {}, {}};
  ChatSettings out{format, config::parse_chat_template(report, text)};
  EXPECT_EQ(config::render(report.errors), "");
  return out;
}

/// What is wrong with a template.
inline std::string refused(const std::string& text) {
  Report report{"own.yaml", {}, {}, {}, {}};
  (void)config::parse_chat_template(report, text);
  return config::render(report.errors);
}

inline ChatMessage notification(int drifts, const std::string& value = "2") {
  ChatMessage out;
  out.id = "e1";
  out.what = "agent.notification";
  out.title = "Backend drift detected: orders";
  out.backend = "orders";
  out.agent = "edge-1";
  out.count = static_cast<std::size_t>(drifts);
  out.find_rest = "driftd drifts --status pending --backend orders";
  for (int i = 0; i < drifts; ++i) {
    const std::string name = "topic/t" + std::to_string(i);
    out.drifts.push_back({"d-" + std::to_string(i), "d-" + std::to_string(i) + "@0123456789ab", "orders", name,
                          "config", "Field " + name + ":retention changed from 1 to " + value});
  }
  return out;
}

inline std::string rendered(const ChatSettings& settings, const ChatMessage& message) {
  const auto out = sinks::render_chat(settings, message);
  EXPECT_TRUE(out) << (out ? "" : out.error().message);
  return out.value_or("null");
}

/// Collects the texts of all members of a name, wherever they are.
inline void collect(const Value& value, std::string_view name, std::vector<std::string>& out) {
  if (const auto* list = value.array()) {
    for (const auto& one : *list) collect(one, name, out);
  }
  if (const auto* members = value.object()) {
    for (const auto& [key, member] : *members) {
      if (key == name && member.string() != nullptr) out.push_back(*member.string());
      collect(member, name, out);
    }
  }
}

inline std::vector<std::string> texts(const std::string& json, std::string_view name = "text") {
  const auto value = core::parse(json);
  EXPECT_TRUE(value) << json;
  std::vector<std::string> out;
  if (value) collect(*value, name, out);
  return out;
}

inline std::size_t blocks_of(const std::string& json) {
  const auto value = core::parse(json);
  return value && value->find("blocks") != nullptr ? value->find("blocks")->array()->size() : 0;
}

}  // namespace driftd::test
