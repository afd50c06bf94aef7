// SPDX-License-Identifier: Apache-2.0
#include "sinks/common/chat/fill.hpp"

#include <algorithm>

namespace driftd::sinks {
namespace {

using core::Value;

Value number_of(std::size_t number) { return Value(Value::Number{std::to_string(number)}); }

std::string label_of(const std::string& action) {
  std::string out = action;
  if (!out.empty()) out.front() = static_cast<char>(out.front() - 'a' + 'A');
  return out;
}

Value links_of(const ChatDrift& drift) {
  Value::Array out;
  for (const auto& link : drift.links) {
    out.push_back(Value::Object{{"action", link.action}, {"label", label_of(link.action)}, {"url", link.url}});
  }
  return Value(std::move(out));
}

Value lines_of(std::string_view text) {
  Value::Array out;
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    out.emplace_back(std::string(text.substr(0, end)));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return Value(std::move(out));
}

Value drifts_of(const ChatMessage& message, std::size_t listed) {
  Value::Array out;
  for (std::size_t i = 0; i < std::min(listed, message.drifts.size()); ++i) {
    const ChatDrift& drift = message.drifts[i];
    out.push_back(Value::Object{{"id", drift.id},
                                {"ref", drift.ref},
                                {"backend", drift.backend},
                                {"resource", drift.resource},
                                {"class", drift.cls},
                                {"message", drift.message},
                                {"lines", lines_of(drift.message)},
                                {"links", links_of(drift)}});
  }
  return Value(std::move(out));
}

/// Returns what is said of the drifts that are not listed. Empty if all are.
std::string rest_of(const ChatMessage& message, std::size_t listed) {
  if (message.drifts.empty() || message.count <= listed) return {};
  return "and " + std::to_string(message.count - listed) + " more: " + message.find_rest;
}

/// What the names of fields mean at one place of the template.
using Scope = std::map<std::string, Value, std::less<>>;

Scope root_of(const ChatMessage& message, std::size_t listed) {
  return {{"title", message.title},
          {"text", message.text},
          {"more", rest_of(message, listed)},
          {"remark", message.remark},
          {"count", number_of(message.count)},
          {"listed", number_of(std::min(listed, message.drifts.size()))},
          {"kind", message.kind},
          {"what", message.what},
          {"id", message.id},
          {"backend", message.backend},
          {"agent", message.agent},
          {"cluster", message.cluster},
          {"time", message.time},
          {"actions", message.actions},
          {"drifts", drifts_of(message, listed)}};
}

const Value* find(const Scope& scope, const std::string& name) {
  if (const auto found = scope.find(name); found != scope.end()) return &found->second;
  const auto dot = name.find('.');
  if (dot == std::string::npos) return nullptr;
  const auto holder = scope.find(name.substr(0, dot));
  return holder == scope.end() ? nullptr : holder->second.find(name.substr(dot + 1));
}

bool is_empty(const Value* value) {
  if (value == nullptr || value->is_null()) return true;
  if (value->string() != nullptr) return value->string()->empty();
  if (value->array() != nullptr) return value->array()->empty();
  return value->number() != nullptr && value->number()->token == "0";
}

std::string text_of(const Value* value) {
  if (value == nullptr) return {};
  if (value->string() != nullptr) return *value->string();
  return value->number() != nullptr ? value->number()->token : "";
}

/// Name under which an element of a list is known: `drift` for `drifts`.
std::string element_name(const std::string& list) {
  const auto dot = list.find('.');
  std::string out = dot == std::string::npos ? list : list.substr(dot + 1);
  out.pop_back();
  return out;
}

class Filling {
 public:
  explicit Filling(const ChatRules& rules) : rules_(rules) {}

  Value node(const ChatNode& node, const Scope& scope, const ChatPlace& place) const {
    switch (node.kind) {
      case ChatNode::Kind::literal:
        return node.literal;
      case ChatNode::Kind::text:
        return text(node, scope, place);
      case ChatNode::Kind::list:
        return list(node, scope, place);
      case ChatNode::Kind::map:
        return map(node, scope);
    }
    return {};
  }

 private:
  Value text(const ChatNode& node, const Scope& scope, const ChatPlace& place) const {
    if (rules_.numbers && node.parts.size() == 1 && node.parts.front().field) {
      const Value* found = find(scope, node.parts.front().text);
      if (found != nullptr && found->number() != nullptr) return *found;
    }
    std::string out;
    for (const auto& part : node.parts) {
      if (!part.field) {
        out += part.text;
      } else {  // the URLs of links are driftd's own
        const std::string value = text_of(find(scope, part.text));
        out += part.text == "link.url" ? value : rules_.escape(value, place);
      }
    }
    return out;
  }

  Value map(const ChatNode& node, const Scope& scope) const {
    ChatPlace place;
    for (const auto& [key, member] : node.members) {
      const bool type = key == "type" && member.kind == ChatNode::Kind::text && member.parts.size() == 1;
      if (type) place.type = member.parts.front().text;
    }
    Value::Object out;
    for (const auto& [key, member] : node.members) {
      place.key = key;
      out.insert_or_assign(key, this->node(member, scope, place));
    }
    return Value(std::move(out));
  }

  Value list(const ChatNode& node, const Scope& scope, const ChatPlace& place) const {
    Value::Array out;
    for (const auto& item : node.items) add(item, scope, place, out);
    return Value(std::move(out));
  }

  void add_one(const ChatNode& item, const Scope& scope, const ChatPlace& place, Value::Array& out) const {
    if (!item.only_if.empty() && is_empty(find(scope, item.only_if))) return;
    if (!item.several) return out.push_back(node(item, scope, place));
    for (const auto& one : item.items) add(one, scope, place, out);
  }

  void add(const ChatNode& item, const Scope& scope, const ChatPlace& place, Value::Array& out) const {
    if (item.each.empty()) return add_one(item, scope, place, out);
    const Value* all = find(scope, item.each);
    if (all == nullptr || all->array() == nullptr) return;
    const std::string name = element_name(item.each);
    for (const auto& element : *all->array()) {
      Scope inner = scope;
      inner[name] = element;
      add_one(item, inner, place, out);
    }
  }

  const ChatRules& rules_;
};

}  // namespace

Value fill(const ChatNode& layout, const ChatMessage& message, std::size_t listed, const ChatRules& rules) {
  return Filling(rules).node(layout, root_of(message, listed), {});
}

}  // namespace driftd::sinks
