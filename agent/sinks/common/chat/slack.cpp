// SPDX-License-Identifier: Apache-2.0
// Block Kit for an incoming webhook of Slack.
#include "base/escape.hpp"
#include "sinks/common/chat/format.hpp"

namespace driftd::sinks {
namespace {

using core::Value;

constexpr std::size_t kMaxBlocks = 50, kMaxFields = 10, kMaxElements = 10, kMaxActions = 25;
constexpr std::size_t kMaxHeader = 150, kMaxSlackText = 3'000, kMaxField = 2'000, kMaxButton = 75;
/// Slack refuses blocks that have some 13,000 characters together (`msg_blocks_too_long`), which it does not document.
constexpr std::size_t kMaxAll = 12'000;

constexpr std::string_view kNothing = "\u200b";  // stands between a mark and its text, and is not seen

/// `&`, `<` and `>` begin what Slack acts on: links, users, `<!channel>`. In `mrkdwn`, other marks make text bold or
/// code; they have no escape, so something unseen takes their meaning away. A `plain_text` shows them.
std::string escape_slack(const std::string& value, const ChatPlace& place) {
  if (place.key == "url") return value;
  std::string out;
  for (const char c : value) {
    if (c == '&') {
      out += "&amp;";
    } else if (c == '<') {
      out += "&lt;";
    } else if (c == '>') {
      out += "&gt;";
    } else {
      out += c;
      const bool mark = place.type == "mrkdwn" && std::string_view("*_~`").find(c) != std::string_view::npos;
      if (mark) out += kNothing;
    }
  }
  return out;
}

/// Returns the number of characters as JavaScript counts them, which is never less than any other count.
std::size_t length_of(std::string_view text) {
  std::size_t out = 0;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte & 0xc0) != 0x80) out += byte >= 0xf0 ? 2 : 1;
  }
  return out;
}

/// Returns the beginning of a text that has at most `most` characters, not cut inside of a character, an escape
/// (`&amp;`) or a link (`<…|…>`).
std::string_view beginning(std::string_view text, std::size_t most) {
  std::size_t bytes = 0, characters = 0;
  while (bytes < text.size()) {
    const std::size_t one = std::max<std::size_t>(utf8_sequence(text.substr(bytes)), 1);
    characters += one == 4 ? 2 : 1;
    if (characters > most) break;
    bytes += one;
  }
  std::string_view out = text.substr(0, bytes);
  if (bytes == text.size()) return out;
  const auto unfinished = [&out](char opening, char closing) {
    const auto at = out.rfind(opening);
    if (at != std::string_view::npos && out.find(closing, at) == std::string_view::npos) out = out.substr(0, at);
  };
  if (const auto at = out.rfind('&'); at != std::string_view::npos && out.size() - at < 6) unfinished('&', ';');
  unfinished('<', '>');
  return out;
}

void cut_text(Value& text, std::size_t most) {
  if (text.string()->empty()) text = Value("-");  // Slack refuses a text without characters
  if (length_of(*text.string()) > most) text = Value(std::string(beginning(*text.string(), most - 1)) + "…");
}

bool cut_list(Value& list, std::size_t most) {
  if (list.array() == nullptr || list.array()->size() <= most) return true;
  list.array()->resize(most);
  return false;
}

std::size_t max_elements(const Value::Object& block) {
  const auto type = block.find("type");
  const bool actions = type != block.end() && type->second.string() != nullptr && *type->second.string() == "actions";
  return actions ? kMaxActions : kMaxElements;
}

/// `most`: characters of a text object at this place.
bool cut_slack(Value& value, std::size_t most) {
  bool whole = true;
  if (auto* list = value.array()) {
    for (auto& item : *list) whole = cut_slack(item, most) && whole;
  }
  auto* members = value.object();
  if (members == nullptr) return whole;
  const auto type = members->find("type");
  const std::string kind = type == members->end() || type->second.string() == nullptr ? "" : *type->second.string();
  if (kind == "header") most = kMaxHeader;
  if (kind == "button") most = kMaxButton;
  for (auto& [key, member] : *members) {
    if (key == "blocks") whole = cut_list(member, kMaxBlocks) && whole;
    if (key == "fields") whole = cut_list(member, kMaxFields) && whole;
    if (key == "elements") whole = cut_list(member, max_elements(*members)) && whole;
    if (key == "text" && member.string() != nullptr) {
      cut_text(member, most);
    } else {
      whole = cut_slack(member, key == "fields" ? kMaxField : most) && whole;
    }
  }
  return whole;
}

}  // namespace

ChatDialect slack_dialect() {
  ChatDialect out;
  out.rules.escape = escape_slack;
  out.cut = [](Value& body) { return cut_slack(body, kMaxSlackText); };
  out.excess = [](const Value& body, const std::string&) {
    const Value* blocks = body.find("blocks");
    const std::size_t characters = blocks == nullptr ? 0 : length_of(core::render(*blocks));
    return characters <= kMaxAll ? std::string()
                                 : "its blocks have " + std::to_string(characters) + " characters; at most " +
                                       std::to_string(kMaxAll) + " are sent to Slack";
  };
  return out;
}

}  // namespace driftd::sinks
