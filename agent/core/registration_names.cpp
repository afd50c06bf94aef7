// SPDX-License-Identifier: Apache-2.0
// The RFC's names of what a registration holds.
#include "core/registration_names.hpp"

#include <algorithm>

#include "core/redact.hpp"
#include "core/value/value.hpp"

namespace driftd::core {
namespace {

using Object = Value::Object;

/// Removes a member and returns it.
std::optional<Value> take(Object& from, std::string_view key) {
  const auto found = from.find(key);
  if (found == from.end()) return std::nullopt;
  Value out = std::move(found->second);
  from.erase(found);
  return out;
}

bool is_on(const Object& settings, std::string_view key) {
  const auto found = settings.find(key);
  if (found == settings.end()) return false;
  return found->second.object() != nullptr || (found->second.boolean() != nullptr && *found->second.boolean());
}

/// Returns the parts of `a,b`, without blanks around them; a list as it is.
Value::Array list_of(const Value& value) {
  if (value.array() != nullptr) return *value.array();
  Value::Array out;
  std::string_view text = value.string() == nullptr ? std::string_view() : std::string_view(*value.string());
  while (!text.empty()) {
    std::string_view part = text.substr(0, text.find(','));
    text.remove_prefix(std::min(part.size() + 1, text.size()));
    while (part.starts_with(' ')) part.remove_prefix(1);
    while (part.ends_with(' ')) part.remove_suffix(1);
    if (!part.empty()) out.emplace_back(std::string(part));
  }
  return out;
}

/// Writes `host` and `port` of HOST:PORT. An address of another form, such as that of a Unix socket, stays `address`.
void put_address(Object& out, const Value& address, std::string_view default_port) {
  const std::string_view text = address.string() == nullptr ? std::string_view() : std::string_view(*address.string());
  const std::size_t colon = text.rfind(':');
  const bool has_port = colon != std::string_view::npos && text.find(']', colon) == std::string_view::npos;
  const std::string_view port = has_port ? text.substr(colon + 1) : default_port;
  const bool number =
      !port.empty() && port.size() <= 5 && port.find_first_not_of("0123456789") == port.npos && port[0] != '0';
  if (text.empty() || !number || text.find('/') != text.npos || text.starts_with('$')) {
    out["address"] = address;
    return;
  }
  out["host"] = Value(std::string(text.substr(0, has_port ? colon : text.size())));
  out["port"] = Value(Value::Number{std::string(port)});
}

void name_kafka(Object& settings) {
  if (const auto servers = take(settings, "bootstrap_servers")) settings["brokers"] = Value(list_of(*servers));
  const bool tls = is_on(settings, "tls"), sasl = is_on(settings, "sasl");
  settings["security_protocol"] = sasl ? (tls ? "SASL_SSL" : "SASL_PLAINTEXT") : tls ? "SSL" : "PLAINTEXT";
  if (auto given = take(settings, "sasl")) settings["auth"] = Value(Object{{"sasl", std::move(*given)}});
}

void name_redis(Object& settings) {
  if (const auto address = take(settings, "address")) put_address(settings, *address, "6379");
  settings["tls_enabled"] = Value(is_on(settings, "tls"));
}

void name_postgres(Object& settings) {
  const auto endpoints = take(settings, "endpoints");
  if (endpoints && list_of(*endpoints).size() == 1) put_address(settings, list_of(*endpoints).front(), "5432");
  if (endpoints && list_of(*endpoints).size() != 1) settings["endpoints"] = *endpoints;
  if (auto user = take(settings, "user")) settings["username"] = std::move(*user);
}

bool is_login(const std::string& key, const Value& value) {
  if (key == "user" || key == "username") return true;
  const std::string* text = value.string();
  return text != nullptr && (*text == "[REDACTED]" || (text->starts_with("${") && text->ends_with('}')));
}

/// Removes driftd's own login: applications have another one.
void strip_login(Object& settings) {
  std::erase_if(settings, [](const auto& member) { return is_login(member.first, member.second); });
  for (auto& [key, value] : settings) {
    if (value.object() != nullptr) strip_login(*value.object());
  }
}

/// Puts the logins of applications where those of driftd were.
void put_credentials(Object& settings, const Object& credentials) {
  Object* to = &settings;
  const auto auth = settings.find("auth");
  if (auth != settings.end() && auth->second.object() != nullptr) {
    const auto sasl = auth->second.object()->find("sasl");
    if (sasl != auth->second.object()->end() && sasl->second.object() != nullptr) to = sasl->second.object();
  }
  for (const auto& [key, value] : credentials) (*to)[key] = value;
}

/// Returns the settings as `{"<type>":{…}}`. `credentials`, if it is an object, takes the place of driftd's own login.
Value named_settings(const std::string& type, const Value& given, const Value* credentials) {
  Object settings = given.object() != nullptr ? *given.object() : Object{};
  if (type == "kafka") name_kafka(settings);
  if (type == "redis") name_redis(settings);
  if (type == "postgres" || type == "postgresql") name_postgres(settings);
  if (credentials != nullptr && credentials->object() != nullptr) {
    strip_login(settings);
    put_credentials(settings, *credentials->object());
  }
  return Value(Object{{type.empty() ? "config" : type, Value(std::move(settings))}});
}

}  // namespace

BackendSnapshot shown_backend(BackendSnapshot registration) {
  const std::string text = presentable_json(registration.config_json.empty() ? "{}" : registration.config_json);
  const auto parsed = parse(text);
  const Value* settings = parsed ? parsed->find("settings") : nullptr;
  const Value* config = parsed ? parsed->find("config") : nullptr;  // of a discovered backend: named so already
  if (settings != nullptr) {
    registration.config_json = render(named_settings(registration.type, *settings, parsed->find("credentials")));
  } else if (config != nullptr && config->object() != nullptr) {
    registration.config_json = render(*config);
  } else {
    registration.config_json = render(Value(Object{{registration.type, Value(Object{})}}));
  }
  return registration;
}

std::string event_config(const std::string& type, const std::string& registration) {
  const auto parsed = parse(presentable_json(registration.empty() ? "{}" : registration));
  const Value* settings = parsed ? parsed->find("settings") : nullptr;
  return settings == nullptr ? registration : render(named_settings(type, *settings, parsed->find("credentials")));
}

Result<Value> registration_fields(const std::string& type, const std::string& registration) {
  DRIFTD_TRY(const Value parsed, parse(registration));
  if (parsed.object() == nullptr) return fail(Code::corrupt, "a registration is not an object");
  Object out = *parsed.object();
  if (auto labels = take(out, "labels")) out["metadata"] = std::move(*labels);
  const auto credentials = take(out, "credentials");
  if (auto settings = take(out, "settings")) {
    out["config"] = named_settings(type, *settings, credentials ? &*credentials : nullptr);
  }
  return Value(std::move(out));
}

}  // namespace driftd::core
