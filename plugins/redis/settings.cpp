// SPDX-License-Identifier: Apache-2.0
#include "redis/settings.hpp"

#include <charconv>

#include "common/settings_reader.hpp"
#include "net/tls_settings.hpp"

namespace driftd::redis {
namespace {

using common::refuse_setting;
using common::SettingsReader;

constexpr std::size_t kMaxAddresses = 16;
constexpr std::chrono::minutes kMaxConnect{1}, kMaxCall{10};

int parse_port(std::string_view text, const std::string& address, const std::string& setting) {
  int port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (error != std::errc{} || end != text.data() + text.size() || port < 1 || port > 65535) {
    refuse_setting(setting, "host:port with a port from 1 to 65535", "'" + address + "'");
  }
  return port;
}

net::Tls parse_tls(SettingsReader from) {
  net::Tls out = net::read_tls(from);
  from.finish();
  return out;
}

SentinelMaster parse_sentinel(SettingsReader from) {
  SentinelMaster out{from.required_text("master", "the name that the Sentinels give the primary"),
                     {from.text("username"), from.text("password")}};
  from.finish();
  return out;
}

Rewrite parse_apply(SettingsReader from) {
  const std::string rewrite = from.text("rewrite", "never");
  if (rewrite != "auto" && rewrite != "never") from.refuse("rewrite", "auto or never", "'" + rewrite + "'");
  from.finish();
  return rewrite == "auto" ? Rewrite::automatic : Rewrite::never;
}

std::vector<Address> parse_addresses(SettingsReader& from) {
  std::vector<Address> out;
  if (from.has("address")) out.push_back(parse_address(from.text("address"), "settings.address"));
  for (const auto& one : from.texts("addresses")) out.push_back(parse_address(one, "settings.addresses"));
  if (out.size() > kMaxAddresses) {
    from.refuse("addresses", "a maximum of " + std::to_string(kMaxAddresses) + " addresses", std::to_string(out.size()),
                "remove some");
  }
  if (out.empty()) out.push_back({});
  return out;
}

}  // namespace

std::string Address::text() const {
  if (!socket.empty()) return "unix:" + socket;
  return (host.find(':') == std::string::npos ? host : "[" + host + "]") + ":" + std::to_string(port);
}

Address parse_address(const std::string& text, const std::string& setting) {
  constexpr const char* kForms = "host:port, [v6]:port or unix:/path/of/redis.sock";
  Address out;
  if (text.starts_with("unix:")) {
    out.socket = text.substr(5);
    if (out.socket.empty()) refuse_setting(setting, kForms, "'unix:', which names no socket");
    return out;
  }
  if (text.empty()) refuse_setting(setting, kForms, "an empty text");
  const bool v6 = text.front() == '[';
  const auto bracket = v6 ? text.find(']') : std::string::npos;
  if (v6 && bracket == std::string::npos) refuse_setting(setting, kForms, "'" + text + "'", "close the bracket");
  const auto colon = text.find(':', v6 ? bracket : 0);
  const std::string host = text.substr(0, colon);
  out.host = v6 ? host.substr(1, host.size() - 2) : host;
  if (colon != std::string::npos) out.port = parse_port(std::string_view(text).substr(colon + 1), text, setting);
  if (out.host.empty()) refuse_setting(setting, kForms, "'" + text + "', which names no host");
  return out;
}

Settings parse_settings(std::string_view text) {
  const auto json = common::parse_settings_json(text);
  SettingsReader from(json);
  Settings out;
  out.addresses = parse_addresses(from);
  out.login = {from.text("username"), from.text("password")};
  if (from.has("tls")) out.tls = parse_tls(from.object("tls"));
  if (from.has("sentinel")) out.sentinel = parse_sentinel(from.object("sentinel"));
  out.config = from.texts("config", out.config);
  if (out.config.empty()) {
    from.refuse("config", "names or globs", "an empty list", "to read no configuration, exclude the kind server");
  }
  out.connect = from.ms("connect_timeout_ms", out.connect, kMaxConnect);
  out.call = from.ms("call_timeout_ms", out.call, kMaxCall);
  out.scope = common::read_scope(from);
  if (from.has("apply")) out.rewrite = parse_apply(from.object("apply"));
  from.finish();
  return out;
}

}  // namespace driftd::redis
