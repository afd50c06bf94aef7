// SPDX-License-Identifier: Apache-2.0
#include "kafka/settings.hpp"

#include <algorithm>
#include <set>

#include "common/settings_reader.hpp"
#include "driftd/sdk/types.hpp"
#include "net/tls_settings.hpp"

namespace driftd::kafka {
namespace {

using common::SettingsReader;

constexpr std::size_t kMaxHellos = 100;  // each is a connection of its own
constexpr std::size_t kMaxName = 255;
constexpr std::chrono::minutes kMaxTimeout{10};
constexpr std::chrono::hours kMaxHelloInterval{24};

std::string trimmed(const std::string& text) {
  const auto from = text.find_first_not_of(" \t");
  return from == std::string::npos ? std::string() : text.substr(from, text.find_last_not_of(" \t") - from + 1);
}

std::vector<std::string> parse_servers(SettingsReader& from, const char* name) {
  const std::string setting = from.where() + "." + name;
  std::vector<std::string> out;
  for (const auto& text : from.text_or_texts(name)) {
    for (std::size_t begin = 0; begin <= text.size();) {
      const std::size_t comma = std::min(text.find(',', begin), text.size());
      out.push_back(parse_endpoint(trimmed(text.substr(begin, comma - begin)), setting));
      begin = comma + 1;
    }
  }
  if (out.empty()) from.refuse(name, "at least one host:port", "nothing", "add it to " + from.where());
  return out;
}

/// Returns what is wrong with the name of a SCRAM user. Empty if nothing is.
std::string mistake_of(const std::string& user) {
  const auto control = [](unsigned char c) { return c < 0x20 || c == 0x7f; };
  if (user.empty()) return "nothing";
  if (user.size() > kMaxName) return std::to_string(user.size()) + " bytes";
  return std::any_of(user.begin(), user.end(), control) ? "a control character" : "";
}

ScramName parse_scram_name(SettingsReader& from) {
  ScramName out{from.text("name"), from.text("mechanism")};
  from.finish();
  if (const std::string mistake = mistake_of(out.user); !mistake.empty()) {
    from.refuse("name", "a name of 1 to 255 bytes without control characters", mistake,
                "write the name of a SCRAM user of the cluster");
  }
  if (out.mechanism != "SCRAM-SHA-256" && out.mechanism != "SCRAM-SHA-512") {
    from.refuse("mechanism", "SCRAM-SHA-256 or SCRAM-SHA-512", "'" + out.mechanism + "'");
  }
  return out;
}

ScramHello parse_hello(SettingsReader from) {
  ScramHello out;
  out.interval = from.seconds("interval_s", out.interval, kMaxHelloInterval);
  if (from.has("servers")) out.servers = parse_servers(from, "servers");
  auto users = from.objects("users");
  from.finish();
  if (users.empty() || users.size() > kMaxHellos) {
    from.refuse("users", "a list of 1 to " + std::to_string(kMaxHellos) + " entries {name, mechanism}",
                users.empty() ? "nothing" : std::to_string(users.size()),
                users.empty() ? "add it to " + from.where() : "remove some");
  }
  std::set<ScramName> seen;
  for (auto& one : users) seen.insert(parse_scram_name(one));
  out.names.assign(seen.begin(), seen.end());
  return out;
}

Tls parse_tls(SettingsReader from) {
  Tls out{net::read_tls(from), from.flag("enabled", true)};
  out.verify = from.flag("verify", true);
  out.key_password_token = from.text("key_password");
  from.finish();
  if (!out.verify && !out.server_name.empty()) {
    from.refuse("server_name", "verify: true beside it", "verify: false, with which no name is compared",
                "remove one of them");
  }
  return out;
}

void check_sasl(const Sasl& sasl, const SettingsReader& from) {
  if (sasl.mechanism == "GSSAPI") {
    throw sdk::Failure(DRIFTD_UNSUPPORTED,
                       "settings.sasl.mechanism: GSSAPI is not built into this provider; use PLAIN, "
                       "SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER or a client certificate");
  }
  const bool bearer = sasl.mechanism == "OAUTHBEARER";
  if (!bearer && sasl.mechanism != "PLAIN" && sasl.mechanism != "SCRAM-SHA-256" && sasl.mechanism != "SCRAM-SHA-512") {
    from.refuse("mechanism", "PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 or OAUTHBEARER", "'" + sasl.mechanism + "'");
  }
  const auto require = [&](const char* name, const std::string& value, const char* expected) {
    if (value.empty()) from.refuse(name, expected, "nothing", "add it to " + from.where());
  };
  if (bearer) return require("token", sasl.bearer_token, "the bearer token (a JWT), by reference");
  require("username", sasl.username, "the name of the monitoring user, for example driftd");
  require("password", sasl.password_token, "the password, by reference");
}

Sasl parse_sasl(SettingsReader from) {
  Sasl out{from.text("mechanism"), from.text("username"), from.text("password"), from.text("token")};
  from.finish();
  check_sasl(out, from);
  return out;
}

}  // namespace

std::string parse_endpoint(const std::string& text, const std::string& setting) {
  const auto bracket = text.starts_with('[') ? text.find(']') : std::string::npos;
  const auto colon = text.find(':', bracket == std::string::npos ? 0 : bracket);
  const std::string host = bracket == std::string::npos ? text.substr(0, colon) : text.substr(0, bracket + 1);
  const std::string port = colon == std::string::npos ? "9092" : text.substr(colon + 1);
  const bool digits = !port.empty() && port.size() <= 5 && port.find_first_not_of("0123456789") == std::string::npos;
  const bool known = host.find_first_of(" \t/@,") == std::string::npos && !host.empty() && host != "[]";
  if (!known || !digits || std::stoi(port) < 1 || std::stoi(port) > 65535) {
    common::refuse_setting(setting, "host:port or [v6]:port with a port from 1 to 65535", "'" + text + "'");
  }
  return host + ":" + port;
}

std::string Settings::principal() const {
  if (sasl.mechanism == "OAUTHBEARER") return {};
  if (!sasl.mechanism.empty()) return "User:" + sasl.username;
  return tls.certificate.empty() ? "User:ANONYMOUS" : std::string();
}

Settings parse_settings(std::string_view text) {
  const auto json = common::parse_settings_json(text);
  SettingsReader from(json);
  Settings out;
  out.bootstrap = parse_servers(from, "bootstrap_servers");
  if (from.has("tls")) out.tls = parse_tls(from.object("tls"));
  if (from.has("sasl")) out.sasl = parse_sasl(from.object("sasl"));
  if (from.has("scram_hello")) out.hello = parse_hello(from.object("scram_hello"));
  out.connect = from.ms("connect_timeout_ms", out.connect, kMaxTimeout);
  out.call = from.ms("call_timeout_ms", out.call, kMaxTimeout);
  out.scope = common::read_scope(from);
  from.finish();
  return out;
}

}  // namespace driftd::kafka
