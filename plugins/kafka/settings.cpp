// SPDX-License-Identifier: Apache-2.0
#include "kafka/settings.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "driftd/sdk/types.hpp"

namespace driftd::kafka {
namespace {

using nlohmann::json;

constexpr std::size_t kMaxHellos = 100;  // each is a connection of its own

[[noreturn]] void invalid(const std::string& setting, const std::string& expected) {
  throw sdk::Failure(DRIFTD_INVALID, "settings." + setting + ": expected " + expected);
}

/// Reads the members of one JSON object; errors name the path to it.
class Object {
 public:
  Object(const json& from, std::string prefix) : from_(from), prefix_(std::move(prefix)) {
    if (!from.is_object()) invalid(prefix_.substr(0, prefix_.size() - 1), "an object");
  }
  std::string text(const char* key) const {
    const auto found = from_.find(key);
    if (found == from_.end()) return {};
    if (!found->is_string()) invalid(prefix_ + key, "text");
    return found->get<std::string>();
  }
  bool flag(const char* key, bool fallback) const {
    const auto found = from_.find(key);
    if (found == from_.end()) return fallback;
    if (!found->is_boolean()) invalid(prefix_ + key, "true or false");
    return found->get<bool>();
  }
  std::chrono::milliseconds ms(const char* key, std::chrono::milliseconds fallback) const {
    return std::chrono::milliseconds(number(key, fallback.count(), 600000, "milliseconds"));
  }
  std::chrono::seconds seconds(const char* key, std::chrono::seconds fallback) const {
    return std::chrono::seconds(number(key, fallback.count(), 86400, "seconds"));
  }
  std::vector<std::string> texts(const char* key) const {
    const auto found = from_.find(key);
    if (found == from_.end()) return {};
    if (found->is_string()) return {found->get<std::string>()};
    if (!found->is_array()) invalid(prefix_ + key, "a text or a list of texts");
    std::vector<std::string> out;
    for (const auto& one : *found) {
      if (!one.is_string()) invalid(prefix_ + key, "a list of texts");
      out.push_back(one.get<std::string>());
    }
    return out;
  }
  const json* find(const char* key) const {
    const auto found = from_.find(key);
    return found == from_.end() ? nullptr : &*found;
  }

 private:
  std::int64_t number(const char* key, std::int64_t fallback, std::uint64_t limit, const char* unit) const {
    const auto found = from_.find(key);
    if (found == from_.end()) return fallback;
    if (!found->is_number_unsigned() || found->get<std::uint64_t>() == 0 || found->get<std::uint64_t>() > limit) {
      invalid(prefix_ + key, "a number of " + std::string(unit) + " from 1 to " + std::to_string(limit));
    }
    return found->get<std::int64_t>();
  }

  const json& from_;
  std::string prefix_;
};

std::string trimmed(const std::string& text) {
  const auto from = text.find_first_not_of(" \t");
  return from == std::string::npos ? std::string() : text.substr(from, text.find_last_not_of(" \t") - from + 1);
}

std::vector<std::string> parse_servers(const std::vector<std::string>& given, const std::string& setting) {
  std::vector<std::string> out;
  for (const auto& text : given) {
    for (std::size_t from = 0; from <= text.size();) {
      const std::size_t comma = std::min(text.find(',', from), text.size());
      out.push_back(parse_endpoint(trimmed(text.substr(from, comma - from)), setting));
      from = comma + 1;
    }
  }
  if (out.empty()) invalid(setting, "at least one host:port");
  return out;
}

ScramName parse_scram_name(const json& from) {
  const Object object(from, "scram_hello.users.");
  ScramName out{object.text("name"), object.text("mechanism")};
  const auto control = [](unsigned char c) { return c < 0x20 || c == 0x7f; };
  if (out.user.empty() || out.user.size() > 255 || std::any_of(out.user.begin(), out.user.end(), control)) {
    invalid("scram_hello.users.name", "a name of 1 to 255 bytes without control characters");
  }
  if (out.mechanism != "SCRAM-SHA-256" && out.mechanism != "SCRAM-SHA-512") {
    invalid("scram_hello.users.mechanism", "SCRAM-SHA-256 or SCRAM-SHA-512, found '" + out.mechanism + "'");
  }
  return out;
}

ScramHello parse_hello(const json& from) {
  const Object object(from, "scram_hello.");
  ScramHello out;
  out.interval = object.seconds("interval_s", out.interval);
  if (object.find("servers") != nullptr) out.servers = parse_servers(object.texts("servers"), "scram_hello.servers");
  const json* users = object.find("users");
  if (users == nullptr || !users->is_array() || users->empty() || users->size() > kMaxHellos) {
    invalid("scram_hello.users", "a list of 1 to " + std::to_string(kMaxHellos) + " entries {name, mechanism}");
  }
  std::set<ScramName> seen;
  for (const auto& one : *users) seen.insert(parse_scram_name(one));
  out.names.assign(seen.begin(), seen.end());
  return out;
}

Tls parse_tls(const json& from) {
  const Object object(from, "tls.");
  Tls out;
  out.on = object.flag("enabled", true);
  out.verify = object.flag("verify", true);
  out.ca = object.text("ca");
  out.certificate = object.text("certificate");
  out.key = object.text("key");
  out.key_password_token = object.text("key_password");
  out.server_name = object.text("server_name");
  if (out.certificate.empty() != out.key.empty()) invalid("tls.certificate", "a certificate and its key, or neither");
  if (!out.verify && !out.server_name.empty()) invalid("tls.server_name", "verify to be on: nothing looks at the name");
  return out;
}

Sasl parse_sasl(const json& from) {
  const Object object(from, "sasl.");
  Sasl out;
  out.mechanism = object.text("mechanism");
  out.username = object.text("username");
  out.password_token = object.text("password");
  out.bearer_token = object.text("token");
  if (out.mechanism == "GSSAPI") {
    throw sdk::Failure(DRIFTD_UNSUPPORTED,
                       "settings.sasl.mechanism: GSSAPI is not built into this provider; use PLAIN, "
                       "SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER or a client certificate");
  }
  const bool bearer = out.mechanism == "OAUTHBEARER";
  if (!bearer && out.mechanism != "PLAIN" && out.mechanism != "SCRAM-SHA-256" && out.mechanism != "SCRAM-SHA-512") {
    invalid("sasl.mechanism", "PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 or OAUTHBEARER, found '" + out.mechanism + "'");
  }
  if (bearer && out.bearer_token.empty()) invalid("sasl.token", "the bearer token (a JWT), by reference");
  if (!bearer && out.username.empty()) invalid("sasl.username", "the name of the monitoring user, for example driftd");
  if (!bearer && out.password_token.empty()) invalid("sasl.password", "the password, by reference");
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
    invalid(setting, "host:port or [v6]:port, found '" + text + "'");
  }
  return host + ":" + port;
}

std::string Settings::principal() const {
  if (sasl.mechanism == "OAUTHBEARER") return {};
  if (!sasl.mechanism.empty()) return "User:" + sasl.username;
  return tls.certificate.empty() ? "User:ANONYMOUS" : std::string();
}

Settings parse_settings(std::string_view text) {
  const json from = json::parse(text, nullptr, false);
  if (!from.is_object()) throw sdk::Failure(DRIFTD_INVALID, "settings: expected a JSON object");
  const Object object(from, "");
  Settings out;
  out.bootstrap = parse_servers(object.texts("bootstrap_servers"), "bootstrap_servers");
  if (const json* tls = object.find("tls")) out.tls = parse_tls(*tls);
  if (const json* sasl = object.find("sasl")) out.sasl = parse_sasl(*sasl);
  if (const json* hello = object.find("scram_hello")) out.hello = parse_hello(*hello);
  out.connect = object.ms("connect_timeout_ms", out.connect);
  out.call = object.ms("call_timeout_ms", out.call);
  out.scope.include = object.texts("include");
  out.scope.exclude = object.texts("exclude");
  return out;
}

}  // namespace driftd::kafka
