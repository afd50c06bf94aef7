// SPDX-License-Identifier: Apache-2.0
#include "proto/digests.hpp"

#include "core/value/path.hpp"
#include "core/value/value.hpp"
#include "driftd/v1/event.pb.h"
#include "proto/serialise.hpp"

namespace driftd::proto {
namespace {

constexpr std::string_view kRedacted = "[REDACTED]";

class Digester {
 public:
  Digester(const Key& key, const v1::BackendChangeEvent& event)
      : key_(key),
        about_(event.backend_uid() + "/" + event.resource_kind() + "/" + event.resource_id()) {}

  core::Value of(const std::string& path, const core::Value& value) const {
    if (value.is_null() || (value.string() != nullptr && *value.string() == kRedacted)) return value;
    return core::Value("digest:" + hmac_hex(key_, {about_, path, core::render(value)}).substr(0, 32));
  }
  std::string text(const std::string& path, const std::string& json) const {
    const auto value = core::parse(json);
    return value ? core::render(of(path, *value)) : core::render(core::Value(std::string(kRedacted)));
  }
  core::Value leaves(const core::Path& path, const core::Value& value) const {
    if (const auto* members = value.object()) {
      core::Value::Object out;
      for (const auto& [name, member] : *members) out.emplace(name, leaves(path.child(name), member));
      return core::Value(std::move(out));
    }
    if (const auto* elements = value.array()) {
      core::Value::Array out;
      for (std::size_t i = 0; i < elements->size(); ++i) out.push_back(leaves(path.child(i), (*elements)[i]));
      return core::Value(std::move(out));
    }
    return of(path.render(), value);
  }
  /// A state that cannot be parsed is left out, because its contents are not known.
  std::string state(const std::string& json) const {
    auto config = core::parse(json);
    auto* members = config ? config->object() : nullptr;
    if (members == nullptr) return "{}";
    for (auto& [name, member] : *members) {
      if (name == "settings") member = leaves(core::Path().child("settings"), member);
      if (name != "resource" || member.object() == nullptr) continue;
      for (auto& [part, value] : *member.object()) {
        if (part == "body") value = leaves(core::Path(), value);
      }
    }
    return core::render(*config);
  }

 private:
  const Key& key_;
  const std::string about_;
};

}  // namespace

Result<core::StoredEvent> digests_only(core::StoredEvent event, const Key& key) {
  if (event.agent_event) return event;
  v1::BackendChangeEvent out;
  if (!out.ParseFromString(event.payload)) {
    return fail(Code::corrupt, "event " + event.stamp.id + ": the stored bytes are not a valid event");
  }
  const Digester digester(key, out);
  for (auto& change : *out.mutable_changes()) {
    if (change.has_old_value()) change.set_old_value(digester.text(change.path(), change.old_value()));
    if (change.has_new_value()) change.set_new_value(digester.text(change.path(), change.new_value()));
  }
  if (out.has_old_state()) out.mutable_old_state()->set_config_json(digester.state(out.old_state().config_json()));
  if (out.has_new_state()) out.mutable_new_state()->set_config_json(digester.state(out.new_state().config_json()));
  event.payload = serialise(out);
  return event;
}

}  // namespace driftd::proto
