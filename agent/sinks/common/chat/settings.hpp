// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/value/value.hpp"

namespace driftd::sinks {

/// What a message is written for (docs/sinks.md, chat).
enum class ChatFormat {
  none,     ///< events, not messages
  generic,  ///< JSON, values as they are
  slack,    ///< Block Kit
  teams     ///< an Adaptive Card in the envelope that a Workflows webhook takes
};

/// A piece of a text: as written, or the name of a field.
struct ChatPart {
  bool field = false;
  std::string text;
  bool operator==(const ChatPart&) const = default;
};

/// A node of a template: JSON in whose texts fields may stand. Because fields are filled in after the JSON was parsed,
/// no value of a field can change its structure.
struct ChatNode {
  enum class Kind { literal, text, list, map };
  Kind kind = Kind::literal;
  core::Value literal;                                    ///< of Kind::literal: a number, a boolean or null
  std::vector<ChatPart> parts;                            ///< of Kind::text
  std::vector<ChatNode> items;                            ///< of Kind::list
  std::vector<std::pair<std::string, ChatNode>> members;  ///< of Kind::map, without `$each` and `$if`
  std::string each;      ///< `$each` of an item: it is repeated for each element of this field; empty: it is not
  std::string only_if;   ///< `$if` of an item: it is left out if this field is empty; empty: it never is
  bool several = false;  ///< `$do` of an item: `items` take its place
  bool operator==(const ChatNode&) const = default;
};

/// A field that a template may name. `inside`: the list in which it exists; empty: everywhere.
struct ChatField {
  std::string_view name, inside;
  bool list = false;  ///< for `$each`, not for a text
};

inline constexpr std::array<ChatField, 27> kChatFields{{
    {"title", ""},
    {"text", ""},
    {"more", ""},
    {"remark", ""},
    {"count", ""},
    {"listed", ""},
    {"kind", ""},
    {"what", ""},
    {"id", ""},
    {"backend", ""},
    {"agent", ""},
    {"cluster", ""},
    {"time", ""},
    {"actions", ""},
    {"drifts", "", true},
    {"drift.id", "drifts"},
    {"drift.ref", "drifts"},
    {"drift.backend", "drifts"},
    {"drift.resource", "drifts"},
    {"drift.class", "drifts"},
    {"drift.message", "drifts"},
    {"drift.lines", "drifts", true},
    {"drift.links", "drifts", true},
    {"line", "drift.lines"},
    {"link.action", "drift.links"},
    {"link.label", "drift.links"},
    {"link.url", "drift.links"},
}};

/// How a chat message is made.
struct ChatSettings {
  ChatFormat format = ChatFormat::none;
  ChatNode layout;  ///< the template: the built-in one of the format, or the file that the user named
  bool operator==(const ChatSettings&) const = default;
};

}  // namespace driftd::sinks
