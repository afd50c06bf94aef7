// SPDX-License-Identifier: Apache-2.0
#include "redis/settings.hpp"

#include <charconv>
#include <nlohmann/json.hpp>

#include "driftd/sdk/types.hpp"

namespace driftd::redis {
namespace {

using nlohmann::json;

[[noreturn]] void bad(const std::string& text) { throw sdk::Failure(DRIFTD_INVALID, text); }

int parse_port(std::string_view text, const std::string& address, const std::string& setting) {
  int port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (error != std::errc{} || end != text.data() + text.size() || port < 1 || port > 65535) {
    bad(setting + ": '" + address + "' has no valid port; expected host:port with a port from 1 to 65535");
  }
  return port;
}

net::Tls parse_tls(const json& from) {
  net::Tls out;
  out.ca = from.value("ca", "");
  out.certificate = from.value("certificate", "");
  out.key = from.value("key", "");
  out.server_name = from.value("server_name", "");
  if (out.certificate.empty() != out.key.empty())
    bad("settings.tls: certificate and key belong together, found one of them");
  return out;
}

SentinelMaster parse_follow(const json& from) {
  SentinelMaster out{from.value("master", ""), {from.value("username", ""), from.value("password", "")}};
  if (out.master.empty()) bad("settings.sentinel.master: expected the name that the Sentinels give the primary");
  return out;
}

std::vector<Address> parse_addresses(const json& root) {
  std::vector<Address> out;
  if (root.contains("address")) out.push_back(parse_address(root.at("address").get<std::string>(), "settings.address"));
  for (const auto& one : root.value("addresses", std::vector<std::string>{})) {
    out.push_back(parse_address(one, "settings.addresses"));
  }
  if (out.size() > 16) bad("settings.addresses: at most 16 are expected, found " + std::to_string(out.size()));
  if (out.empty()) out.push_back({});
  return out;
}

Settings from_json(const json& root) {
  Settings out;
  out.addresses = parse_addresses(root);
  out.login = {root.value("username", ""), root.value("password", "")};
  if (root.contains("tls")) out.tls = parse_tls(root.at("tls"));
  if (root.contains("sentinel")) out.sentinel = parse_follow(root.at("sentinel"));
  out.config = root.value("config", out.config);
  if (out.config.empty()) bad("settings.config: is empty; expected names or globs, or exclude the kind server");
  out.connect = std::chrono::milliseconds(root.value("connect_timeout_ms", 5000));
  out.call = std::chrono::milliseconds(root.value("call_timeout_ms", 20'000));
  out.scope.include = root.value("include", std::vector<std::string>{});
  out.scope.exclude = root.value("exclude", std::vector<std::string>{});
  return out;
}

}  // namespace

std::string Address::text() const {
  if (!socket.empty()) return "unix:" + socket;
  return (host.find(':') == std::string::npos ? host : "[" + host + "]") + ":" + std::to_string(port);
}

Address parse_address(const std::string& text, const std::string& setting) {
  Address out;
  if (text.rfind("unix:", 0) == 0) {
    out.socket = text.substr(5);
    if (out.socket.empty()) bad(setting + ": 'unix:' names no socket; expected unix:/path/of/redis.sock");
    return out;
  }
  if (text.empty()) bad(setting + ": is empty; expected host:port, [v6]:port or unix:/path");
  const bool v6 = text.front() == '[';
  const auto bracket = v6 ? text.find(']') : std::string::npos;
  if (v6 && bracket == std::string::npos) bad(setting + ": '" + text + "' lacks the closing bracket");
  const auto colon = text.find(':', v6 ? bracket : 0);
  const std::string host = text.substr(0, colon);
  out.host = v6 ? host.substr(1, host.size() - 2) : host;
  if (colon != std::string::npos) out.port = parse_port(std::string_view(text).substr(colon + 1), text, setting);
  if (out.host.empty()) bad(setting + ": '" + text + "' names no host");
  return out;
}

Settings parse_settings(std::string_view text) {
  const auto root = json::parse(text, nullptr, false);
  if (!root.is_object()) bad("settings: expected a JSON object");
  try {
    return from_json(root);
  } catch (const json::exception& e) {
    bad(std::string("settings: ") + e.what());
  }
}

}  // namespace driftd::redis
