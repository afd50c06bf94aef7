// SPDX-License-Identifier: Apache-2.0
// The notifier's states as text.
#include <charconv>

#include "core/value/value.hpp"
#include "delivery/notify.hpp"

namespace driftd::delivery {
namespace {

using core::Value;

const std::string kGroup = "group/", kSent = "sent";

Value number_of(std::int64_t number) { return Value(Value::Number{std::to_string(number)}); }

std::int64_t number_at(const Value& object, const char* name) {
  const Value* found = object.find(name);
  std::int64_t out = 0;
  if (found == nullptr || found->number() == nullptr) return out;
  const std::string& text = found->number()->token;
  (void)std::from_chars(text.data(), text.data() + text.size(), out);
  return out;
}

std::string text_at(const Value& object, const char* name) {
  const Value* found = object.find(name);
  return found == nullptr || found->string() == nullptr ? "" : *found->string();
}

std::string render_group(const NotifyGroup& group) {
  Value::Array reported;
  for (const auto& mark : group.reported) reported.emplace_back(mark);
  return core::render(Value(Value::Object{{"title", Value(group.title)},
                                          {"backend", Value(group.backend)},
                                          {"reported", Value(std::move(reported))},
                                          {"first", number_of(group.first_ns)},
                                          {"last", number_of(group.last_ns)},
                                          {"ends", number_of(group.ends)},
                                          {"escalated", Value(group.escalated)},
                                          {"held", Value(group.held)}}));
}

bool flag_at(const Value& object, const char* name) {
  const Value* found = object.find(name);
  return found != nullptr && core::render(*found) == "true";
}

NotifyGroup parse_group(const Value& object) {
  NotifyGroup out;
  out.title = text_at(object, "title");
  out.backend = text_at(object, "backend");
  if (const Value* list = object.find("reported"); list != nullptr && list->array() != nullptr) {
    for (const auto& mark : *list->array()) {
      if (mark.string() != nullptr) out.reported.insert(*mark.string());
    }
  }
  out.first_ns = number_at(object, "first");
  out.last_ns = number_at(object, "last");
  out.ends = static_cast<int>(number_at(object, "ends"));
  out.escalated = flag_at(object, "escalated");
  out.held = flag_at(object, "held");
  return out;
}

}  // namespace

std::map<std::string, std::string> render_states(const NotifyState& state) {
  std::map<std::string, std::string> out;
  for (const auto& [key, group] : state.groups) out.emplace(kGroup + key, render_group(group));
  Value::Array sent;
  for (const Nanos at : state.sent) sent.push_back(number_of(at));
  if (!sent.empty()) out.emplace(kSent, core::render(Value(Value::Object{{"at", Value(std::move(sent))}})));
  return out;
}

NotifyState parse_states(const std::map<std::string, std::string>& states) {
  NotifyState out;
  for (const auto& [name, text] : states) {
    const auto value = core::parse(text);
    if (!value || value->object() == nullptr) continue;
    if (name.starts_with(kGroup)) out.groups.emplace(name.substr(kGroup.size()), parse_group(*value));
    const Value* at = name == kSent ? value->find("at") : nullptr;
    if (at == nullptr || at->array() == nullptr) continue;
    for (const auto& one : *at->array()) {
      Value::Object holder{{"n", one}};
      out.sent.push_back(number_at(Value(std::move(holder)), "n"));
    }
  }
  return out;
}

}  // namespace driftd::delivery
