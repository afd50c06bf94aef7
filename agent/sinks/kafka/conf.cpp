// SPDX-License-Identifier: Apache-2.0
#include "sinks/kafka/conf.hpp"

#include <openssl/x509v3.h>
#include <algorithm>
#include <cstdio>

#include "sinks/kafka/failure_text.hpp"

namespace driftd::sinks {
namespace {

constexpr std::int64_t kMaxRecordBytes = 256 << 20;  // the topic and the broker decide, not the library
constexpr std::int64_t kMaxQueuedKiB = 1 << 20;
constexpr std::int64_t kReadBytes = 64 << 10;        // of one answer for one partition; a larger batch comes alone
constexpr std::int64_t kReadAnswerBytes = 4 << 20;   // of one answer
constexpr std::int64_t kMaxAnswerBytes = 128 << 20;  // a batch that is larger is not read
constexpr std::int64_t kMinTransactionMs = 60'000;

/// Sets properties and keeps the first error.
class Writer {
 public:
  explicit Writer(rd_kafka_conf_t* conf) : conf_(conf) {}

  void set(const char* property, const std::string& value, const char* key) {
    char error[kErrorTextBytes];
    if (!status_ || rd_kafka_conf_set(conf_, property, value.c_str(), error, sizeof error) == RD_KAFKA_CONF_OK) return;
    status_ = fail(Code::invalid, std::string("Kafka: '") + key + "' is refused by the library: " + error);
  }
  void number(const char* property, std::int64_t value, const char* key) { set(property, std::to_string(value), key); }
  /// The text of the library is left out, because it may contain the value.
  void secret(const char* property, const std::string& value, const char* key) {
    char error[kErrorTextBytes];
    if (!status_ || rd_kafka_conf_set(conf_, property, value.c_str(), error, sizeof error) == RD_KAFKA_CONF_OK) return;
    status_ = fail(Code::invalid, std::string("Kafka: '") + key + "' is refused by the library");
  }
  const Status& status() const { return status_; }

 private:
  rd_kafka_conf_t* conf_;
  Status status_;
};

/// [library threads] Looks for tls.server_name in the broker's own certificate, after OpenSSL has checked the chain.
int on_certificate(rd_kafka_t*, const char*, std::int32_t, int* error, int depth, const char* der, std::size_t size,
                   char* text, std::size_t limit, void* opaque) {
  if (*error != 0) {
    std::snprintf(text, limit, "certificate verify failed: %s", X509_verify_cert_error_string(*error));
    return 0;
  }
  if (depth != 0) return 1;
  const std::string& name = static_cast<const KafkaSettings*>(opaque)->tls_server_name;
  const auto* at = reinterpret_cast<const unsigned char*>(der);
  const std::unique_ptr<X509, decltype(&X509_free)> leaf(d2i_X509(nullptr, &at, static_cast<long>(size)), &X509_free);
  const bool fits = leaf && (X509_check_host(leaf.get(), name.c_str(), name.size(), 0, nullptr) == 1 ||
                             X509_check_ip_asc(leaf.get(), name.c_str(), 0) == 1);
  if (!fits) std::snprintf(text, limit, "certificate verify failed: it is not for %s (tls.server_name)", name.c_str());
  return fits ? 1 : 0;
}

/// [library threads] Prints nothing; errors that matter also arrive as events.
void on_log(const rd_kafka_t*, int, const char*, const char*) {}

void write_tls(Writer& to, rd_kafka_conf_t* conf, const KafkaSettings& settings) {
  if (!settings.tls_ca.empty()) to.set("ssl.ca.location", settings.tls_ca, "tls.ca");
  if (!settings.tls_certificate.empty())
    to.set("ssl.certificate.location", settings.tls_certificate, "tls.certificate");
  if (!settings.tls_key.empty()) to.set("ssl.key.location", settings.tls_key, "tls.key");
  if (!settings.tls_key_password.empty()) to.secret("ssl.key.password", settings.tls_key_password, "tls.key_password");
  to.set("enable.ssl.certificate.verification", settings.tls_verify ? "true" : "false", "tls.verify");
  const bool by_host = settings.tls_verify && settings.tls_server_name.empty();
  to.set("ssl.endpoint.identification.algorithm", by_host ? "https" : "none", "tls.verify");
  if (settings.tls_server_name.empty()) return;
  rd_kafka_conf_set_opaque(conf, const_cast<KafkaSettings*>(&settings));
  rd_kafka_conf_set_ssl_cert_verify_cb(conf, &on_certificate);
}

void write_connection(Writer& to, rd_kafka_conf_t* conf, const KafkaSettings& settings, const std::string& name) {
  std::string servers;
  for (const auto& one : settings.bootstrap_servers) servers += (servers.empty() ? "" : ",") + one;
  to.set("bootstrap.servers", servers, "bootstrap_servers");
  to.set("client.id", "driftd " + name, "bootstrap_servers");
  const bool sasl = !settings.sasl_mechanism.empty();
  to.set("security.protocol", settings.tls ? (sasl ? "sasl_ssl" : "ssl") : (sasl ? "sasl_plaintext" : "plaintext"),
         "tls");
  if (settings.tls) write_tls(to, conf, settings);
  if (sasl) {
    to.set("sasl.mechanism", settings.sasl_mechanism, "sasl.mechanism");
    to.set("sasl.username", settings.sasl_username, "sasl.username");
    to.secret("sasl.password", settings.sasl_password, "sasl.password");
  }
  to.number("socket.connection.setup.timeout.ms", std::max<std::int64_t>(settings.connect_timeout.count(), 1000),
            "connect_timeout");
  to.set("socket.keepalive.enable", "true", "bootstrap_servers");
  to.set("socket.nagle.disable", "true", "bootstrap_servers");
  to.set("reconnect.backoff.ms", "100", "bootstrap_servers");
  to.set("reconnect.backoff.max.ms", "2000", "bootstrap_servers");  // waiting events arrive soon after the return
  to.set("allow.auto.create.topics", "false", "topic");             // create_topic says whether and how
  rd_kafka_conf_set_log_cb(conf, &on_log);
}

Result<Conf> finished(Conf conf, const Writer& writer) {
  if (!writer.status()) return fail(writer.status().error());
  return conf;
}

}  // namespace

Result<Conf> producer_conf(const KafkaSettings& settings, const std::string& name, std::size_t batch_bytes) {
  Conf conf(rd_kafka_conf_new());
  Writer to(conf.get());
  write_connection(to, conf.get(), settings, name);
  // Idempotence implies acks=all and at most five requests in flight: a retry neither repeats nor reorders records.
  to.set("enable.idempotence", "true", "topic");
  to.set("acks", "all", "topic");
  to.number("message.timeout.ms", settings.ack_wait.count(), "ack_wait");
  to.set("linger.ms", "0", "topic");  // what arrives while requests are in flight fills the next batch
  to.set("compression.type", settings.compression, "compression");
  to.number("message.max.bytes", kMaxRecordBytes, "topic");
  to.number("batch.size", static_cast<std::int64_t>(batch_bytes), "topic");
  to.number("queue.buffering.max.kbytes", kMaxQueuedKiB, "topic");
  to.set("topic.metadata.refresh.interval.ms", "60000", "topic");
  if (!settings.transactional_id.empty()) {
    to.set("transactional.id", settings.transactional_id, "transactional_id");
    to.number("transaction.timeout.ms", std::max<std::int64_t>(kMinTransactionMs, settings.ack_wait.count()),
              "ack_wait");
  }
  rd_kafka_conf_set_events(conf.get(), RD_KAFKA_EVENT_DR | RD_KAFKA_EVENT_ERROR);
  return finished(std::move(conf), to);
}

Result<Conf> reader_conf(const KafkaSettings& settings, const std::string& name) {
  Conf conf(rd_kafka_conf_new());
  Writer to(conf.get());
  write_connection(to, conf.get(), settings, name);
  to.set("enable.auto.commit", "false", "topic");
  to.set("enable.auto.offset.store", "false", "topic");
  to.set("auto.offset.reset", "error", "topic");
  to.set("isolation.level", "read_uncommitted", "topic");  // does not wait for other producers' open transactions
  to.set("queued.min.messages", "1", "topic");
  to.number("fetch.message.max.bytes", kReadBytes, "topic");
  to.number("fetch.max.bytes", kReadAnswerBytes, "topic");
  to.number("message.max.bytes", kReadAnswerBytes, "topic");
  to.number("receive.message.max.bytes", kMaxAnswerBytes, "topic");
  return finished(std::move(conf), to);
}

}  // namespace driftd::sinks
