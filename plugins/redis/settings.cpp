// SPDX-License-Identifier: Apache-2.0
#include "redis/settings.hpp"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "driftd/sdk/types.hpp"

namespace driftd::redis {
namespace {

[[noreturn]] void bad(const std::string& text) { throw sdk::Failure(DRIFTD_INVALID, text); }

int parse_port(std::string_view text, const std::string& address) {
  int port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (error != std::errc{} || end != text.data() + text.size() || port < 1 || port > 65535) {
    bad("settings.address: '" + address + "' has no valid port; expected host:port with a port from 1 to 65535");
  }
  return port;
}

void parse_address(const std::string& address, Settings& out) {
  if (address.rfind("unix:", 0) == 0) {
    out.socket = address.substr(5);
    if (out.socket.empty()) bad("settings.address: 'unix:' names no socket; expected unix:/path/of/redis.sock");
    return;
  }
  if (address.empty()) bad("settings.address: is empty; expected host:port, [v6]:port or unix:/path");
  const bool v6 = address.front() == '[';
  const auto bracket = v6 ? address.find(']') : std::string::npos;
  if (v6 && bracket == std::string::npos) bad("settings.address: '" + address + "' lacks the closing bracket");
  const auto colon = address.find(':', v6 ? bracket : 0);
  const std::string host = address.substr(0, colon);
  out.host = v6 ? host.substr(1, host.size() - 2) : host;
  if (colon != std::string::npos) out.port = parse_port(std::string_view(address).substr(colon + 1), address);
  if (out.host.empty()) bad("settings.address: '" + address + "' names no host");
}

}  // namespace

Settings parse_settings(std::string_view json) {
  const auto root = nlohmann::json::parse(json, nullptr, false);
  if (!root.is_object()) bad("settings: expected a JSON object");
  Settings out;
  try {
    parse_address(root.value("address", "127.0.0.1:6379"), out);
    out.username = root.value("username", "");
    out.password_token = root.value("password", "");
    out.connect = std::chrono::milliseconds(root.value("connect_timeout_ms", 5000));
    out.call = std::chrono::milliseconds(root.value("call_timeout_ms", 20'000));
    out.scope.include = root.value("include", std::vector<std::string>{});
    out.scope.exclude = root.value("exclude", std::vector<std::string>{});
  } catch (const nlohmann::json::exception& e) {
    bad(std::string("settings: ") + e.what());
  }
  return out;
}

}  // namespace driftd::redis
