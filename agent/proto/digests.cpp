// SPDX-License-Identifier: Apache-2.0
#include "proto/digests.hpp"

#include <set>

#include "core/value/path.hpp"
#include "core/value/value.hpp"
#include "driftd/v1/event.pb.h"
#include "proto/serialise.hpp"

namespace driftd::proto {
namespace {

constexpr std::string_view kRedacted = "[REDACTED]";

/// Members of a registration that name the backend and say nothing of its settings.
const std::set<std::string_view> kKept = {"name",   "type",     "provider",  "origin",      "endpoint",
                                          "labels", "patterns", "endpoints", "capabilities"};

class Digester {
 public:
  Digester(const Key& key, const v1::BackendChangeEvent& event)
      : key_(key),
        resource_(event.backend_uid() + "/" + event.resource_kind() + "/" + event.resource_id()) {}

  core::Value digest_of(const std::string& path, const core::Value& value) const {
    if (value.is_null() || (value.string() != nullptr && *value.string() == kRedacted)) return value;
    return core::Value("digest:" + hmac_hex(key_, {resource_, path, core::render(value)}).substr(0, 32));
  }
  std::string digest_of_json(const std::string& path, const std::string& json) const {
    const auto value = core::parse(json);
    return value ? core::render(digest_of(path, *value)) : core::render(core::Value(std::string(kRedacted)));
  }
  core::Value digest_leaves(const core::Path& path, const core::Value& value) const {
    if (const auto* members = value.object()) {
      core::Value::Object out;
      for (const auto& [name, member] : *members) out.emplace(name, digest_leaves(path.child(name), member));
      return core::Value(std::move(out));
    }
    if (const auto* elements = value.array()) {
      core::Value::Array out;
      for (std::size_t i = 0; i < elements->size(); ++i) out.push_back(digest_leaves(path.child(i), (*elements)[i]));
      return core::Value(std::move(out));
    }
    return digest_of(path.render(), value);
  }
  /// What names a backend stays; every other member holds values. A state that cannot be parsed is left out, because
  /// its contents are not known.
  std::string digest_state(const std::string& json) const {
    auto config = core::parse(json);
    auto* members = config ? config->object() : nullptr;
    if (members == nullptr) return "{}";
    const auto named = members->find("name");  // without it, the settings stand under the backend's type
    const bool registration = named != members->end() && named->second.string() != nullptr;
    for (auto& [name, member] : *members) {
      if (name == "sha256") {
        member = digest_of("sha256", member);  // stands for a state that is too long
      } else if (name != "resource" && (!registration || kKept.count(name) == 0)) {
        member = digest_leaves(core::Path().child(name), member);
      }
      if (name != "resource" || member.object() == nullptr) continue;
      for (auto& [part, value] : *member.object()) {
        if (part == "body") value = digest_leaves(core::Path(), value);
      }
    }
    return core::render(*config);
  }

 private:
  const Key& key_;
  const std::string resource_;
};

/// Returns a drift of a notification without its message, which shows values. What it is about is kept.
core::Value without_values(const core::Value& drift, std::string& text) {
  core::Value out = drift;
  auto* members = out.object();
  if (members == nullptr) return {};
  members->erase("message");
  const auto text_at = [members](const char* name) {
    const auto found = members->find(name);
    return found == members->end() || found->second.string() == nullptr ? std::string() : *found->second.string();
  };
  const std::string message = text_at("resource") + " of " + text_at("backend") + " changed (" + text_at("class") + ")";
  text += message + "\n";
  members->insert_or_assign("message", core::Value(message + "; its values are not sent here"));
  return out;
}

/// A notification and an escalation say in their text what changed to what. Nothing of that text is kept, as nobody can
/// tell its values from the rest.
Result<core::StoredEvent> without_values(core::StoredEvent event) {
  v1::AgentEvent out;
  if (!out.ParseFromString(event.payload)) {
    return fail(Code::corrupt, "event " + event.stamp.id + ": the stored bytes are not a valid event");
  }
  auto& details = *out.mutable_details();
  const auto list = core::parse(details["drifts"]);
  core::Value::Array drifts;
  std::string text;
  if (list && list->array() != nullptr) {
    for (const auto& drift : *list->array()) drifts.push_back(without_values(drift, text));
  }
  if (details["kind"] == "summary" || details["kind"] == "ended") return event;  // it has no values
  details["drifts"] = core::render(core::Value(std::move(drifts)));
  out.set_message(text + "The values are not sent here. driftd drifts --status pending\n" + details["remark"]);
  event.payload = serialise(out);
  return event;
}

}  // namespace

Result<core::StoredEvent> digests_only(core::StoredEvent event, const Key& key) {
  if (event.agent_event && (event.what == "notification" || event.what == "escalation")) {
    return without_values(std::move(event));
  }
  if (event.agent_event) return event;
  v1::BackendChangeEvent out;
  if (!out.ParseFromString(event.payload)) {
    return fail(Code::corrupt, "event " + event.stamp.id + ": the stored bytes are not a valid event");
  }
  const Digester digester(key, out);
  for (auto& change : *out.mutable_changes()) {
    if (change.has_old_value()) change.set_old_value(digester.digest_of_json(change.path(), change.old_value()));
    if (change.has_new_value()) change.set_new_value(digester.digest_of_json(change.path(), change.new_value()));
  }
  if (out.has_old_state())
    out.mutable_old_state()->set_config_json(digester.digest_state(out.old_state().config_json()));
  if (out.has_new_state())
    out.mutable_new_state()->set_config_json(digester.digest_state(out.new_state().config_json()));
  event.payload = serialise(out);
  return event;
}

}  // namespace driftd::proto
