// SPDX-License-Identifier: Apache-2.0
#include "kafka/conf.hpp"

#include <string.h>
#include <algorithm>
#include <nlohmann/json.hpp>

namespace driftd::kafka {
namespace {

/// Sets properties; the error names the setting behind a rejected one.
class Writer {
 public:
  explicit Writer(rd_kafka_conf_t* conf) : conf_(conf) {}
  void set(const char* property, const std::string& value, const char* setting) const {
    char error[256];
    if (rd_kafka_conf_set(conf_, property, value.c_str(), error, sizeof error) == RD_KAFKA_CONF_OK) return;
    throw sdk::Failure(DRIFTD_INVALID, std::string("settings.") + setting + ": " + error);
  }
  void number(const char* property, std::int64_t value, const char* setting) const {
    set(property, std::to_string(value), setting);
  }
  /// The text of the library is left out, because it may hold the value.
  void secret(const char* property, std::string value, const char* setting) const {
    char error[256];
    const auto result = rd_kafka_conf_set(conf_, property, value.c_str(), error, sizeof error);
    wipe(value);
    ::explicit_bzero(error, sizeof error);
    if (result != RD_KAFKA_CONF_OK)
      throw sdk::Failure(DRIFTD_INVALID, std::string("settings.") + setting + ": refused");
  }

 private:
  rd_kafka_conf_t* conf_;
};

void write_tls(const Writer& to, sdk::Call& call, const Tls& tls) {
  if (!tls.ca.empty()) to.set("ssl.ca.location", tls.ca, "tls.ca");
  if (!tls.certificate.empty()) to.set("ssl.certificate.location", tls.certificate, "tls.certificate");
  if (!tls.key.empty()) to.set("ssl.key.location", tls.key, "tls.key");
  if (!tls.key_password_token.empty())
    to.secret("ssl.key.password", call.secret(tls.key_password_token), "tls.key_password");
  to.set("enable.ssl.certificate.verification", tls.verify ? "true" : "false", "tls.verify");
  const bool by_host = tls.verify && tls.server_name.empty();
  to.set("ssl.endpoint.identification.algorithm", by_host ? "https" : "none", "tls.verify");
}

void write_sasl(const Writer& to, sdk::Call& call, const Sasl& sasl) {
  to.set("sasl.mechanism", sasl.mechanism, "sasl.mechanism");
  if (sasl.mechanism == "OAUTHBEARER") return;
  to.set("sasl.username", sasl.username, "sasl.username");
  to.secret("sasl.password", call.secret(sasl.password_token), "sasl.password");
}

std::string decode_base64url(std::string_view text) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  std::string out;
  unsigned bits = 0;
  int count = 0;
  for (const char c : text) {
    const auto at = kDigits.find(c);
    if (at == std::string_view::npos) break;
    bits = bits << 6 | static_cast<unsigned>(at);
    count += 6;
    if (count < 8) continue;
    count -= 8;
    out.push_back(static_cast<char>(bits >> count & 0xff));
  }
  return out;
}

}  // namespace

void wipe(std::string& secret) {
  ::explicit_bzero(secret.data(), secret.size());
  secret.clear();
}

BearerClaims claims_of(const std::string& token, std::int64_t now_ms) {
  const auto first = token.find('.');
  const auto second = first == std::string::npos ? first : token.find('.', first + 1);
  nlohmann::json claims;
  if (second != std::string::npos) {
    claims = nlohmann::json::parse(decode_base64url(std::string_view(token).substr(first + 1, second - first - 1)),
                                   nullptr, false);
  }
  if (!claims.is_object()) {
    throw sdk::Failure(DRIFTD_INVALID, "settings.sasl.token: expected a JWT, three base64url parts with dots between");
  }
  BearerClaims out{now_ms + 3'600'000, "driftd"};
  const auto exp = claims.find("exp");
  constexpr double kLatest = 9e12;  // seconds, practically never: librdkafka converts it to microseconds
  if (exp != claims.end() && exp->is_number()) {
    out.until_ms = static_cast<std::int64_t>(std::clamp(exp->get<double>(), -kLatest, kLatest) * 1000);
  }
  const auto sub = claims.find("sub");
  if (sub != claims.end() && sub->is_string()) out.subject = sub->get<std::string>();
  return out;
}

Conf make_conf(sdk::Call& call, const Settings& settings) {
  Conf conf(rd_kafka_conf_new(), &rd_kafka_conf_destroy);
  const Writer to(conf.get());
  std::string servers;
  for (const auto& one : settings.bootstrap) servers += (servers.empty() ? "" : ",") + one;
  to.set("bootstrap.servers", servers, "bootstrap_servers");
  to.set("client.id", "driftd", "bootstrap_servers");
  const bool sasl = !settings.sasl.mechanism.empty();
  to.set("security.protocol", settings.tls.on ? (sasl ? "sasl_ssl" : "ssl") : (sasl ? "sasl_plaintext" : "plaintext"),
         "tls");
  if (settings.tls.on) write_tls(to, call, settings.tls);
  if (sasl) write_sasl(to, call, settings.sasl);
  to.number("socket.connection.setup.timeout.ms", std::max<std::int64_t>(settings.connect.count(), 1000),
            "connect_timeout_ms");
  to.number("socket.timeout.ms", std::max<std::int64_t>(settings.call.count(), 1000), "call_timeout_ms");
  to.set("socket.keepalive.enable", "true", "bootstrap_servers");
  to.set("reconnect.backoff.max.ms", "1000", "bootstrap_servers");
  to.set("allow.auto.create.topics", "false", "bootstrap_servers");  // reading must not create topics
  to.set("topic.metadata.refresh.interval.ms", "-1", "bootstrap_servers");
  to.set("log_level", "3", "bootstrap_servers");
  return conf;
}

}  // namespace driftd::kafka
