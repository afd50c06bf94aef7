// SPDX-License-Identifier: Apache-2.0
#include "sinks/kafka/failure_text.hpp"

#include <algorithm>

namespace driftd::sinks {
namespace {

constexpr int kScramOfKafka4 = 0x020601ff;  // older ones repeat their nonce, which Kafka 4 does not accept

struct Advice {
  rd_kafka_resp_err_t error;
  const char* text;
};

constexpr Advice kAdvice[] = {
    {RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED,
     "grant the account WRITE and DESCRIBE on the topic, and CREATE if the agent is to create it"},
    {RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED,
     "grant the account IDEMPOTENT_WRITE on the cluster (brokers before 2.8), and CREATE if the agent is to create the "
     "topic"},
    {RD_KAFKA_RESP_ERR_TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
     "grant the account WRITE and DESCRIBE on the transactional id, or leave out transactional_id"},
    {RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART,
     "there is no such topic: create it, or leave it to the agent with create_topic: true"},
    {RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE,
     "raise max.message.bytes of the topic (and message.max.bytes of the brokers)"},
    {RD_KAFKA_RESP_ERR_INVALID_REPLICATION_FACTOR, "lower replication_factor of the sink, or add brokers"},
    {RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS, "fewer replicas are in sync than the topic's min.insync.replicas"},
    {RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS_AFTER_APPEND,
     "fewer replicas are in sync than the topic's min.insync.replicas"},
    {RD_KAFKA_RESP_ERR_POLICY_VIOLATION, "a policy of the cluster refuses it: create the topic by hand"},
    {RD_KAFKA_RESP_ERR_INVALID_RECORD,
     "the topic refuses this record: see the broker's log; a validator or a cleanup.policy may be the reason"},
    {RD_KAFKA_RESP_ERR_SASL_AUTHENTICATION_FAILED, "check sasl.mechanism, sasl.username and sasl.password"},
    {RD_KAFKA_RESP_ERR__AUTHENTICATION, "check sasl.mechanism, sasl.username and sasl.password"},
    {RD_KAFKA_RESP_ERR_UNSUPPORTED_VERSION, "the broker is too old for idempotent producers: Kafka 0.11 or newer"},
    {RD_KAFKA_RESP_ERR__SSL, "check tls.ca, tls.certificate and tls.key, and that the port speaks TLS"},
};

std::string advice_for(rd_kafka_resp_err_t error) {
  const auto* found =
      std::find_if(std::begin(kAdvice), std::end(kAdvice), [error](const Advice& a) { return a.error == error; });
  return found == std::end(kAdvice) ? "" : std::string("; ") + found->text;
}

void remove_all(std::string& text, const std::string& secret) {
  constexpr std::string_view kInstead = "[REDACTED]";
  if (secret.empty()) return;
  for (auto at = text.find(secret); at != std::string::npos; at = text.find(secret, at + kInstead.size()))
    text.replace(at, secret.size(), kInstead);
}

}  // namespace

std::string shown(std::string text, const KafkaSettings& settings) {
  remove_all(text, settings.sasl_password);
  remove_all(text, settings.tls_key_password);
  std::replace_if(
      text.begin(), text.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; }, ' ');
  return text;
}

std::string describe_failure(rd_kafka_resp_err_t error, const std::string& text, const KafkaSettings& settings) {
  std::string servers;
  for (const auto& one : settings.bootstrap_servers) servers += (servers.empty() ? "" : ", ") + one;
  std::string out = "Kafka at " + servers + ", topic " + settings.topic + ": " +
                    shown(text.empty() ? rd_kafka_err2str(error) : text, settings) + advice_for(error);
  const bool scram = error == RD_KAFKA_RESP_ERR__AUTHENTICATION && settings.sasl_mechanism.starts_with("SCRAM");
  if (scram && rd_kafka_version() < kScramOfKafka4) {
    out +=
        "; if this is Kafka 4 or newer: librdkafka before 2.6.1 cannot log in there by SCRAM, use PLAIN over TLS or a "
        "client certificate";
  }
  return out;
}

Error failure(rd_kafka_resp_err_t error, const std::string& text, const KafkaSettings& settings) {
  Code code = Code::unavailable;
  switch (error) {
    case RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED:
    case RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED:
    case RD_KAFKA_RESP_ERR_TRANSACTIONAL_ID_AUTHORIZATION_FAILED:
      code = Code::denied;
      break;
    case RD_KAFKA_RESP_ERR__AUTHENTICATION:
    case RD_KAFKA_RESP_ERR_SASL_AUTHENTICATION_FAILED:
      code = Code::unauthenticated;
      break;
    default:
      break;
  }
  return {code, describe_failure(error, text, settings)};
}

core::Attempt::Outcome classify_failure(rd_kafka_resp_err_t error) {
  using Outcome = core::Attempt::Outcome;
  switch (error) {
    case RD_KAFKA_RESP_ERR_NO_ERROR:
      return Outcome::delivered;
    case RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE:
    case RD_KAFKA_RESP_ERR_RECORD_LIST_TOO_LARGE:
    case RD_KAFKA_RESP_ERR_INVALID_RECORD:
    case RD_KAFKA_RESP_ERR_INVALID_TIMESTAMP:
      return Outcome::permanent;
    case RD_KAFKA_RESP_ERR__MSG_TIMED_OUT:  // of this partition only, perhaps
    case RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS:
    case RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS_AFTER_APPEND:
    case RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE:
    case RD_KAFKA_RESP_ERR_KAFKA_STORAGE_ERROR:
    case RD_KAFKA_RESP_ERR_POLICY_VIOLATION:
      return Outcome::refused;
    default:
      return Outcome::retry_sink;
  }
}

bool is_topic_gone(rd_kafka_resp_err_t error) {
  return error == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART || error == RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC ||
         error == RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION;
}

bool is_fenced(rd_kafka_resp_err_t error) {
  return error == RD_KAFKA_RESP_ERR__FENCED || error == RD_KAFKA_RESP_ERR_INVALID_PRODUCER_EPOCH ||
         error == RD_KAFKA_RESP_ERR_PRODUCER_FENCED;
}

}  // namespace driftd::sinks
