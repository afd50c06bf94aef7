// SPDX-License-Identifier: Apache-2.0
#include "driftd/consumer/event.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "driftd/v1/event.pb.h"

namespace driftd::consumer {
namespace {

/// The text of a JSON string or number. Empty if it is something else, or withheld.
std::optional<std::string> text_of(const std::string& value) {
  const auto parsed = nlohmann::json::parse(value, nullptr, false);
  if (parsed.is_number_integer()) return parsed.dump();
  if (!parsed.is_string() || parsed == "[REDACTED]") return std::nullopt;
  return parsed.get<std::string>();
}

bool is_address(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  return colon != text.npos && colon > 0 && colon + 1 < text.size() && text.size() <= 1'024 &&
         std::all_of(text.begin() + static_cast<std::ptrdiff_t>(colon) + 1, text.end(),
                     [](char c) { return c >= '0' && c <= '9'; });
}

/// Where the backend is now, from what changed: one attribute that is an address (a Sentinel's `primary`), or `host`
/// and `port`. The entry of the registry in `new_state` comes first where it moved itself.
std::string endpoint_of(const v1::BackendChangeEvent& event) {
  const std::string& entry = event.new_state().endpoint();
  if (!entry.empty() && entry != event.old_state().endpoint()) return entry;
  std::string host, port;
  std::set<std::string> addresses;
  for (const auto& change : event.changes()) {
    if (change.change_class() != "endpoint" || !change.has_new_value()) continue;
    const auto value = text_of(change.new_value());
    if (!value) continue;
    if (is_address(*value)) addresses.insert(*value);
    if (change.path() == "host" || change.path().ends_with(".host")) host = *value;
    if (change.path() == "port" || change.path().ends_with(".port")) port = *value;
  }
  if (addresses.size() == 1) return *addresses.begin();
  return host.empty() || port.empty() ? std::string() : host + ":" + port;
}

}  // namespace

Result<BackendEvent> parse_backend_event(std::string_view body) {
  v1::BackendChangeEvent event;
  if (!event.ParseFromArray(body.data(), static_cast<int>(body.size()))) {
    return fail(Code::invalid, "the body is not a driftd.v1.BackendChangeEvent");
  }
  if (event.backend_name().empty()) return fail(Code::invalid, "the event names no backend");
  BackendEvent out;
  out.id = event.event_id();
  out.order = {event.incarnation(), event.sequence()};
  out.backend = event.backend_name();
  const int type = event.change_type();
  out.type = v1::BackendChangeType_IsValid(type) ? static_cast<ChangeType>(type) : ChangeType::unspecified;
  out.key = event.backend_uid() + "/";
  if (!event.resource_kind().empty()) out.key += event.resource_kind() + "/" + event.resource_id();
  if (out.type == ChangeType::health_changed) {
    const auto health = event.new_state().metadata().find("health");
    if (health != event.new_state().metadata().end()) out.health = health->second;
  } else if (out.type != ChangeType::deleted) {
    out.endpoint = endpoint_of(event);
  }
  return out;
}

Subscription subscription_of(const std::string& pattern, const std::vector<SlotBinding>& bindings) {
  std::set<std::string> names;
  for (const auto& binding : bindings) {
    names.insert(binding.backend);
    names.insert(binding.alternates.begin(), binding.alternates.end());
  }
  // `created`: a backend that was deleted and is there again.
  return {pattern,
          {names.begin(), names.end()},
          {ChangeType::created, ChangeType::updated, ChangeType::deleted, ChangeType::credential_rotated,
           ChangeType::health_changed, ChangeType::endpoint_changed}};
}

std::string subject_of_backend(const std::string& backend) {
  constexpr char kHex[] = "0123456789ABCDEF";
  std::string name;
  for (const char c : backend) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = (byte >= 'A' && byte <= 'Z') || (byte >= 'a' && byte <= 'z') || (byte >= '0' && byte <= '9') ||
                       byte == '_' || byte == '-';
    // The names of the views must not be taken for a backend's.
    const bool view = name.empty() && (backend == "type" || backend == "source");
    if (plain && !view) {
      name += c;
    } else {
      name += {'=', kHex[byte >> 4], kHex[byte & 15]};
    }
  }
  return "backend." + (name.empty() ? "=" : name) + ".>";
}

}  // namespace driftd::consumer
