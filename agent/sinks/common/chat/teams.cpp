// SPDX-License-Identifier: Apache-2.0
// Adaptive Cards for a Workflows webhook of Microsoft Teams.
#include "base/escape.hpp"
#include "sinks/common/chat/format.hpp"

namespace driftd::sinks {
namespace {

/// Teams takes 28 KB at most. Receivers were seen to refuse less, because they count what Teams makes of it.
constexpr std::size_t kMaxTeamsBytes = 20'000;
constexpr std::size_t kMaxTeamsText = 4'000;  // bytes of one text

/// A TextBlock shows Markdown, and `{{DATE(…)}}` as a date. A TextRun and the title of an action show what they are
/// given.
bool shows_markdown(const ChatPlace& place) {
  return place.type != "TextRun" && !place.type.starts_with("Action.") && place.key != "url";
}

std::string escape_teams(const std::string& value, const ChatPlace& place) {
  if (!shows_markdown(place)) return value;
  std::string out;
  for (const char c : value) {
    if (std::string_view("\\`*_{}[]()#+-.!~|<>&").find(c) != std::string_view::npos) out += '\\';
    out += c;
    if (c == '\n') out += c;  // one line feed alone is a space in Markdown
  }
  return out;
}

void cut_teams(core::Value& value) {
  if (auto* list = value.array()) {
    for (auto& item : *list) cut_teams(item);
  }
  if (value.object() == nullptr) return;
  for (auto& [key, member] : *value.object()) {
    if (key != "text" || member.string() == nullptr) {
      cut_teams(member);
    } else if (member.string()->size() > kMaxTeamsText) {
      std::string_view kept = front(*member.string(), kMaxTeamsText);
      while (kept.ends_with('\\')) kept.remove_suffix(1);
      member = core::Value(std::string(kept) + "…");
    }
  }
}

}  // namespace

ChatDialect teams_dialect() {
  ChatDialect out;
  out.rules.escape = escape_teams;
  out.cut = [](core::Value& body) {
    cut_teams(body);
    return true;
  };
  out.excess = [](const core::Value&, const std::string& json) {
    return json.size() <= kMaxTeamsBytes ? std::string()
                                         : "the card has " + std::to_string(json.size()) + " bytes; at most " +
                                               std::to_string(kMaxTeamsBytes) + " are sent to Teams";
  };
  return out;
}

}  // namespace driftd::sinks
