// SPDX-License-Identifier: Apache-2.0
#include "postgres/settings.hpp"

#include "common/settings_reader.hpp"

namespace driftd::postgres {
namespace {

using common::SettingsReader;

constexpr const char* kEndpoints = "settings.endpoints";
constexpr std::chrono::milliseconds kMaxTimeout{2'147'483'647};  // the maximum of statement_timeout

/// Parses `/folder`, `/folder:port` or `/folder/.s.PGSQL.port`. Throws INVALID that begins with `where`, the setting.
Endpoint parse_socket(const std::string& path, const std::string& where) {
  constexpr std::string_view kName = "/.s.PGSQL.";
  if (!path.starts_with('/')) {
    common::refuse_setting(where, "the absolute path of a socket or its folder", "'" + path + "'", "begin it with /");
  }
  const auto at = path.rfind(kName);
  if (at != std::string::npos) return {path.substr(0, at), path.substr(at + kName.size())};
  const auto colon = path.rfind(':');
  if (colon != std::string::npos) return {path.substr(0, colon), path.substr(colon + 1)};
  return {path};
}

Verifiers parse_verifiers(SettingsReader& from) {
  const std::string text = from.text("verifiers", "function");
  if (text == "function") return Verifiers::function;
  if (text == "pg_authid") return Verifiers::pg_authid;
  if (text == "off") return Verifiers::off;
  from.refuse("verifiers", "function, pg_authid or off", "'" + text + "'");
}

/// `include` and `exclude`. Globs over the former kind would match nothing: an include would watch no rule any more,
/// and say nothing.
sdk::Scope parse_scope(SettingsReader& from) {
  const auto check = [&](const char* name, const std::vector<std::string>& globs) {
    for (const auto& glob : globs) {
      if (glob == "hba_rule" || glob.starts_with("hba_rule/"))
        from.refuse(name, "a kind of this provider", "'" + glob + "'",
                    "write hba: all rules of pg_hba.conf are one resource, hba/pg_hba.conf, since 0.3.0");
    }
  };
  sdk::Scope out = common::read_scope(from);
  check("include", out.include);
  check("exclude", out.exclude);
  return out;
}

std::vector<Endpoint> parse_endpoints(SettingsReader& from) {
  std::vector<Endpoint> out;
  for (const auto& text : from.text_or_texts("endpoints")) out.push_back(parse_endpoint(text));
  if (const std::string socket = from.text("socket"); !socket.empty()) {
    out.push_back(parse_socket(socket, "settings.socket"));
  }
  if (out.empty()) from.refuse("endpoints", "at least one host:port (or a socket)", "nothing", "add it to settings");
  return out;
}

}  // namespace

std::string Endpoint::text() const {
  if (host.starts_with('/')) return "unix:" + host + ":" + port;
  if (host.find(':') != std::string::npos) return "[" + host + "]:" + port;
  return host + ":" + port;
}

Endpoint parse_endpoint(const std::string& text) {
  if (text.starts_with("unix:")) return parse_socket(text.substr(5), kEndpoints);
  Endpoint out;
  const auto bracket = text.starts_with('[') ? text.find(']') : std::string::npos;
  const auto colon = text.find(':', bracket == std::string::npos ? 0 : bracket);
  out.host = bracket == std::string::npos ? text.substr(0, colon) : text.substr(1, bracket - 1);
  if (colon != std::string::npos) out.port = text.substr(colon + 1);
  const bool digits = !out.port.empty() && out.port.find_first_not_of("0123456789") == std::string::npos;
  if (out.host.empty() || !digits || out.port.size() > 5) {
    common::refuse_setting(kEndpoints, "host:port, [v6]:port or unix:/folder", "'" + text + "'");
  }
  return out;
}

Settings parse_settings(std::string_view text) {
  const auto json = common::parse_settings_json(text);
  SettingsReader from(json);
  Settings out;
  out.endpoints = parse_endpoints(from);
  out.user = from.required_text("user", "the name of the monitoring role, for example driftd");
  out.password_token = from.text("password");
  out.database = from.text("database", out.database);
  out.sslmode = from.text("sslmode", out.sslmode);
  out.sslrootcert = from.text("sslrootcert");
  out.sslcert = from.text("sslcert");
  out.sslkey = from.text("sslkey");
  out.session_attrs = from.text("target_session_attrs", out.session_attrs);
  out.connect = from.ms("connect_timeout_ms", out.connect, kMaxTimeout);
  out.statement = from.ms("statement_timeout_ms", out.statement, kMaxTimeout);
  out.databases = from.text_or_texts("databases");
  out.fingerprints = from.text_or_texts("fingerprints");
  out.scope = parse_scope(from);
  out.verifiers = parse_verifiers(from);
  from.finish();
  return out;
}

}  // namespace driftd::postgres
