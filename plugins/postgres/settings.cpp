// SPDX-License-Identifier: Apache-2.0
#include "postgres/settings.hpp"

#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "driftd/sdk/types.hpp"

namespace driftd::postgres {
namespace {

using nlohmann::json;

[[noreturn]] void invalid(const std::string& setting, const std::string& expected) {
  throw sdk::Failure(DRIFTD_INVALID, "settings." + setting + ": expected " + expected);
}

std::string text_or(const json& from, const char* key, std::string fallback) {
  const auto found = from.find(key);
  if (found == from.end()) return fallback;
  if (!found->is_string()) invalid(key, "text");
  return found->get<std::string>();
}

std::chrono::milliseconds ms_or(const json& from, const char* key, std::chrono::milliseconds fallback) {
  const auto found = from.find(key);
  if (found == from.end()) return fallback;
  if (!found->is_number_unsigned() || found->get<std::uint64_t>() == 0)
    invalid(key, "a number of milliseconds above 0");
  return std::chrono::milliseconds(found->get<std::int64_t>());
}

std::vector<std::string> texts(const json& from, const char* key) {
  const auto found = from.find(key);
  if (found == from.end()) return {};
  if (found->is_string()) return {found->get<std::string>()};
  if (!found->is_array()) invalid(key, "a text or a list of texts");
  std::vector<std::string> out;
  for (const auto& one : *found) {
    if (!one.is_string()) invalid(key, "a list of texts");
    out.push_back(one.get<std::string>());
  }
  return out;
}

Endpoint parse_socket(const std::string& path) {
  constexpr std::string_view kName = "/.s.PGSQL.";
  if (path.empty() || path[0] != '/') invalid("endpoints", "an absolute path after unix:, found '" + path + "'");
  const auto at = path.rfind(kName);
  if (at != std::string::npos) return {path.substr(0, at), path.substr(at + kName.size())};
  const auto colon = path.rfind(':');
  if (colon != std::string::npos) return {path.substr(0, colon), path.substr(colon + 1)};
  return {path};
}

Verifiers parse_verifiers(const std::string& text) {
  if (text == "function") return Verifiers::function;
  if (text == "pg_authid") return Verifiers::pg_authid;
  if (text == "off") return Verifiers::off;
  invalid("verifiers", "function, pg_authid or off, found '" + text + "'");
}

std::vector<Endpoint> parse_endpoints(const json& from) {
  std::vector<Endpoint> out;
  for (const auto& text : texts(from, "endpoints")) out.push_back(parse_endpoint(text));
  if (const std::string socket = text_or(from, "socket", ""); !socket.empty()) out.push_back(parse_socket(socket));
  if (out.empty()) invalid("endpoints", "at least one host:port (or a socket)");
  return out;
}

}  // namespace

std::string Endpoint::text() const {
  if (host.starts_with('/')) return "unix:" + host + ":" + port;
  if (host.find(':') != std::string::npos) return "[" + host + "]:" + port;
  return host + ":" + port;
}

Endpoint parse_endpoint(const std::string& text) {
  if (text.starts_with("unix:")) return parse_socket(text.substr(5));
  Endpoint out;
  const auto bracket = text.starts_with('[') ? text.find(']') : std::string::npos;
  const auto colon = text.find(':', bracket == std::string::npos ? 0 : bracket);
  out.host = bracket == std::string::npos ? text.substr(0, colon) : text.substr(1, bracket - 1);
  if (colon != std::string::npos) out.port = text.substr(colon + 1);
  const bool digits = !out.port.empty() && out.port.find_first_not_of("0123456789") == std::string::npos;
  if (out.host.empty() || !digits || out.port.size() > 5) {
    invalid("endpoints", "host:port, [v6]:port or unix:/folder, found '" + text + "'");
  }
  return out;
}

Settings parse_settings(std::string_view text) {
  const json from = json::parse(text, nullptr, false);
  if (!from.is_object()) throw sdk::Failure(DRIFTD_INVALID, "settings: expected a JSON object");
  Settings out;
  out.endpoints = parse_endpoints(from);
  out.user = text_or(from, "user", "");
  if (out.user.empty()) invalid("user", "the name of the monitoring role, for example driftd");
  out.password_token = text_or(from, "password", "");
  out.database = text_or(from, "database", out.database);
  out.sslmode = text_or(from, "sslmode", out.sslmode);
  out.sslrootcert = text_or(from, "sslrootcert", "");
  out.sslcert = text_or(from, "sslcert", "");
  out.sslkey = text_or(from, "sslkey", "");
  out.session_attrs = text_or(from, "target_session_attrs", out.session_attrs);
  out.connect = ms_or(from, "connect_timeout_ms", out.connect);
  out.statement = ms_or(from, "statement_timeout_ms", out.statement);
  out.databases = texts(from, "databases");
  out.fingerprints = texts(from, "fingerprints");
  out.scope.include = texts(from, "include");
  out.scope.exclude = texts(from, "exclude");
  out.verifiers = parse_verifiers(text_or(from, "verifiers", "function"));
  return out;
}

}  // namespace driftd::postgres
