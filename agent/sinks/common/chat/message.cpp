// SPDX-License-Identifier: Apache-2.0
#include "sinks/common/chat/message.hpp"

#include <algorithm>
#include <charconv>

#include "base/escape.hpp"
#include "core/value/value.hpp"
#include "driftd/v1/event.pb.h"

namespace driftd::sinks {
namespace {

constexpr int kMaxChanges = 10;              // of an event that is not a notification
constexpr std::size_t kMaxValue = 120;       // bytes
constexpr std::size_t kMaxTitle = 140;       // bytes; a title is one line everywhere
constexpr std::size_t kMaxMessage = 16'384;  // bytes

/// Returns the text with its lines, and everything in it visible: a name with control characters or marks that turn
/// the writing direction could make a message say something else.
std::string shown(std::string_view text, std::size_t bytes = kMaxMessage) {
  const bool cut = text.size() > bytes;
  text = front(text, bytes);
  std::string out;
  while (true) {
    const auto end = text.find('\n');
    out += escaped(text.substr(0, end));
    if (end == std::string_view::npos) break;
    out += "\n";
    text.remove_prefix(end + 1);
  }
  return cut ? out + "…" : out;
}

std::string text_at(const core::Value& object, std::string_view name) {
  const core::Value* found = object.find(name);
  return found == nullptr || found->string() == nullptr ? "" : shown(*found->string());
}

/// Returns the drifts of a notification. Empty if the event does not say what each of them is about.
std::vector<ChatDrift> drifts_of(const std::string& json) {
  const auto list = core::parse(json);
  if (!list || list->array() == nullptr) return {};
  std::vector<ChatDrift> out;
  for (const auto& one : *list->array()) {
    if (one.find("message") == nullptr) return {};
    out.push_back({text_at(one, "id"), text_at(one, "ref"), text_at(one, "backend"), text_at(one, "resource"),
                   text_at(one, "class"), text_at(one, "message"), text_at(one, "actions")});
  }
  return out;
}

std::size_t number_of(const std::string& text) {
  std::size_t out = 0;
  (void)std::from_chars(text.data(), text.data() + text.size(), out);
  return out;
}

Result<ChatMessage> message_of_agent(const core::StoredEvent& event) {
  v1::AgentEvent about;
  if (!about.ParseFromString(event.payload)) {
    return fail(Code::corrupt, "event " + event.stamp.id + ": the stored bytes are not a valid event");
  }
  const auto detail = [&about](const char* name) {
    const auto found = about.details().find(name);
    return found == about.details().end() ? std::string() : found->second;
  };
  ChatMessage out;
  out.agent = shown(about.agent());
  out.cluster = shown(about.cluster());
  out.backend = shown(about.backend_name());
  out.kind = shown(detail("kind"));
  out.title = detail("title");
  if (out.title.empty()) {
    out.title = "driftd: " + about.what() + (about.backend_name().empty() ? "" : ": " + about.backend_name());
  }
  out.title = shown(out.title, kMaxTitle);
  out.actions = shown(detail("actions"));
  out.count = number_of(detail("count"));
  out.drifts = drifts_of(detail("drifts"));
  out.count = std::max(out.count, out.drifts.size());
  if (out.drifts.empty()) {
    out.text = shown(about.message());
    return out;
  }
  out.remark = shown(detail("remark"));
  out.find_rest = "driftd drifts --status pending" + (out.backend.empty() ? "" : " --backend " + out.backend);
  return out;
}

std::string value_of(const v1::AttributeChange& change, bool present, const std::string& value) {
  if (!present) return "(absent)";
  return change.redacted() ? "[REDACTED]" : value;
}

std::string change_line(const v1::BackendChangeEvent& event, const v1::AttributeChange& change) {
  const auto [before, now] = around_difference(value_of(change, change.has_old_value(), change.old_value()),
                                               value_of(change, change.has_new_value(), change.new_value()), kMaxValue);
  const bool itself = change.path().empty() || change.path() == core::kIdentityPath;
  return "Field " + event.resource_kind() + "/" + event.resource_id() +
         (itself ? " (" + event.operation() + ")" : ":" + change.path()) + " changed from " + before + " to " + now;
}

Result<ChatMessage> message_of_backend(const core::StoredEvent& event) {
  v1::BackendChangeEvent about;
  if (!about.ParseFromString(event.payload)) {
    return fail(Code::corrupt, "event " + event.stamp.id + ": the stored bytes are not a valid event");
  }
  ChatMessage out;
  out.agent = shown(about.agent());
  out.cluster = shown(about.cluster());
  out.backend = shown(about.backend_name());
  out.kind = shown(about.operation());
  const bool drift = !about.drift_id().empty() && about.what() != "drift.decided";
  out.title =
      shown((drift ? "Backend drift detected: " : "Backend " + about.what() + ": ") + about.backend_name(), kMaxTitle);
  std::string text;
  for (int i = 0; i < std::min(about.changes_size(), kMaxChanges); ++i) {
    text += change_line(about, about.changes(i)) + "\n";
  }
  if (about.changes_size() > kMaxChanges) {
    text += "and " + std::to_string(about.changes_size() - kMaxChanges) + " more\n";
  }
  if (!about.reconciliation_status().empty()) text += "Status: " + about.reconciliation_status() + "\n";
  if (!about.cause().empty()) text += "Cause: " + about.cause() + "\n";
  if (!text.empty()) text.pop_back();
  out.text = shown(text);
  return out;
}

}  // namespace

Result<ChatMessage> message_of(const core::StoredEvent& event) {
  auto out = event.agent_event ? message_of_agent(event) : message_of_backend(event);
  if (!out) return out;
  out->id = event.stamp.id;
  out->what = (event.agent_event ? "agent." : "") + event.what;
  out->time = render_time(event.stamp.recorded_ns);
  return out;
}

}  // namespace driftd::sinks
