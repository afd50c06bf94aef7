// SPDX-License-Identifier: Apache-2.0
// Reads a sink of `type: kafka`.
#include "config/kafka_sink.hpp"

#include <algorithm>

namespace driftd::config {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kMaxRetention{3650LL * 86'400'000};
constexpr std::size_t kMaxTopicName = 249;

/// Returns what is wrong with `HOST:PORT` or `[V6]:PORT`. Empty if nothing is.
std::string mistake_of_server(std::string_view text) {
  const auto bracket = text.starts_with('[') ? text.find(']') : 0;
  if (bracket == std::string_view::npos) return "the '[' is not closed";
  const auto colon = text.find(':', bracket);
  if (colon == 0 || text.empty()) return "the host is missing";
  if (text.find_first_of(" \t/@,") != std::string_view::npos) return "it contains a space, '/', '@' or ','";
  const std::string_view port = colon == std::string_view::npos ? "" : text.substr(colon + 1);
  const bool digits =
      !port.empty() && port.size() <= 5 && port.find_first_not_of("0123456789") == std::string_view::npos;
  const int number = digits ? std::stoi(std::string(port)) : 0;
  return number < 1 || number > 65'535 ? "the port is missing or not a number from 1 to 65535" : "";
}

bool is_topic_name(std::string_view name) {
  const auto allowed = [](unsigned char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' ||
           c == '-';
  };
  return !name.empty() && name.size() <= kMaxTopicName && name != "." && name != ".." &&
         std::all_of(name.begin(), name.end(), allowed);
}

bool is_loopback_server(std::string_view server) {
  return server.starts_with("127.") || server.starts_with("localhost:") || server.starts_with("[::1]");
}

void read_servers(Section& sink, sinks::KafkaSettings& out) {
  out.bootstrap_servers = sink.texts("bootstrap_servers");
  if (out.bootstrap_servers.empty())
    sink.report().error(sink.at("bootstrap_servers"), sink.title() + " has no bootstrap_servers", "[\"HOST:9092\"]");
  for (const auto& server : out.bootstrap_servers) {
    const std::string mistake = mistake_of_server(server);
    if (mistake.empty()) continue;
    sink.report().error(sink.at("bootstrap_servers"),
                        "a server in 'bootstrap_servers' of " + sink.title() + " is not valid: " + mistake,
                        "HOST:PORT or [V6]:PORT", "'" + server + "'");
  }
}

void read_topic(Section& sink, sinks::KafkaSettings& out) {
  out.topic = sink.text("topic", out.topic);
  if (!is_topic_name(out.topic))
    sink.report().error(sink.at("topic"), "'topic' of " + sink.title() + " is not a name of a Kafka topic",
                        "1 to 249 letters, digits, '.', '_' and '-'", "'" + out.topic + "'");
  out.create_topic = sink.boolean("create_topic", true);
  if (sink.find("partitions") != nullptr) out.partitions = static_cast<int>(sink.integer("partitions", 1, 1, 10'000));
  if (sink.find("replication_factor") != nullptr)
    out.replication_factor = static_cast<int>(sink.integer("replication_factor", 1, 1, 100));
  if (sink.find("retention") != nullptr)
    out.retention = sink.duration("retention", milliseconds(604'800'000), milliseconds(60'000), kMaxRetention);
}

void read_tls(Section& sink, const NestedText& secret, sinks::KafkaSettings& out) {
  const Node* node = sink.find("tls");
  if (node != nullptr && node->kind == Node::Kind::scalar) {
    out.tls = sink.boolean("tls", false);
    return;
  }
  Section tls = sink.section("tls");
  out.tls = tls.boolean("enabled", tls.present());
  out.tls_verify = tls.boolean("verify", true);
  out.tls_ca = tls.text("ca");
  out.tls_certificate = tls.text("certificate");
  out.tls_key = tls.text("key");
  out.tls_key_password = secret(tls, "tls", "key_password");
  out.tls_server_name = tls.text("server_name");
  if (out.tls_certificate.empty() != out.tls_key.empty())
    tls.report().error(tls.at(), tls.title() + " has only one of 'certificate' and 'key'", "both or none");
  if (!out.tls_verify && !out.tls_server_name.empty()) {
    tls.report().error(tls.at("server_name"), tls.title() + " has a 'server_name' that is compared with nothing",
                       "verify: true beside it", "verify: false", "remove one of them");
  }
  tls.close();
}

void read_sasl(Section& sink, const NestedText& secret, sinks::KafkaSettings& out) {
  Section sasl = sink.section("sasl");
  if (!sasl.present()) {  // all of its keys are known all the same
    if (sink.find("sasl") != nullptr) sink.wrong("sasl", *sink.find("sasl"), "a map with 'mechanism'");
    return;
  }
  out.sasl_mechanism = sasl.choice("mechanism", "", {"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"});
  out.sasl_username = secret(sasl, "sasl", "username");
  out.sasl_password = secret(sasl, "sasl", "password");
  const auto require = [&sasl](const char* key, bool missing, const char* expected) {
    if (missing) sasl.report().error(sasl.at(), sasl.title() + " has no '" + key + "'", expected);
  };
  require("mechanism", sasl.find("mechanism") == nullptr, "one of PLAIN, SCRAM-SHA-256, SCRAM-SHA-512");
  require("username", sasl.find("username") == nullptr, "the name of the account");
  require("password", sasl.find("password") == nullptr, "password: \"${file:…}\"");
  sasl.close();
}

/// Warns if a password would be sent so that it can be read or guessed on the way.
void warn_of_clear_text(Section& sink, const sinks::KafkaSettings& settings) {
  if (settings.tls || settings.sasl_mechanism.empty()) return;
  const auto& servers = settings.bootstrap_servers;
  const auto far =
      std::find_if_not(servers.begin(), servers.end(), [](const std::string& s) { return is_loopback_server(s); });
  if (far == servers.end()) return;
  const bool plain = settings.sasl_mechanism == "PLAIN";
  sink.report().warn(sink.at("sasl"),
                     sink.title() + " logs in to " + *far + " without TLS: everybody on the way can " +
                         (plain ? "read its password" : "read the events and guess its password"),
                     "tls: true");
}

}  // namespace

sinks::KafkaSettings read_kafka(Section& sink, const NestedText& secret) {
  sinks::KafkaSettings out;
  read_servers(sink, out);
  read_topic(sink, out);
  out.json = sink.choice("format", "protobuf", {"protobuf", "json"}) == "json";
  out.compression = sink.choice("compression", "none", {"none", "gzip", "snappy", "lz4", "zstd"});
  out.transactional_id = sink.text("transactional_id");
  out.ack_wait = sink.duration("ack_wait", out.ack_wait, milliseconds(1'000), milliseconds(300'000));
  out.connect_timeout =
      sink.duration("connect_timeout", out.connect_timeout, milliseconds(1'000), milliseconds(60'000));
  read_tls(sink, secret, out);
  read_sasl(sink, secret, out);
  warn_of_clear_text(sink, out);
  return out;
}

}  // namespace driftd::config
