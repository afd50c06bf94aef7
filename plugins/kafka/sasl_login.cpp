// SPDX-License-Identifier: Apache-2.0
#include "kafka/sasl_login.hpp"

#include "kafka/conf.hpp"
#include "kafka/scram_proof.hpp"
#include "kafka/scram_wire.hpp"
#include "kafka/text.hpp"

namespace driftd::kafka {
namespace {

using namespace std::string_literals;

/// Sends one message of the login and returns the broker's.
std::string exchange(BrokerConnection& connection, std::int32_t correlation, const std::string& message) {
  connection.send(authenticate_request(correlation, message));
  const std::string answer = connection.answer();
  WireAnswer fields("login", answer, correlation);
  const std::int32_t error = fields.number(2);
  const std::string words = fields.text(2);
  if (error != 0) {
    throw sdk::Failure(DRIFTD_UNAUTHENTICATED, "login: the broker refuses it (error " + std::to_string(error) +
                                                   "): " + one_line(words) + "; check settings.sasl");
  }
  return fields.text(4);
}

void scram_login(BrokerConnection& connection, const Sasl& sasl, const std::string& password) {
  const std::string nonce = make_nonce(), first = client_first(sasl.username, nonce);
  const std::string answer = exchange(connection, 2, first);
  const ScramProof proof = scram_proof(sasl.mechanism, password, first, answer, nonce);
  const std::string last = exchange(connection, 3, proof.client_final);
  if (last.substr(0, last.find(',')) != proof.server_final) {
    throw sdk::Failure(DRIFTD_UNAUTHENTICATED,
                       "login: the broker does not prove that it knows the password; expected its SCRAM signature. "
                       "Nothing was sent to it; find out who answers at this address");
  }
}

}  // namespace

void sasl_login(sdk::Call& call, const Settings& settings, BrokerConnection& connection) {
  const Sasl& sasl = settings.sasl;
  if (sasl.mechanism.empty()) return;
  connection.send(handshake_request(1, sasl.mechanism));
  parse_handshake(connection.answer(), 1, sasl.mechanism, "login");
  const bool bearer = sasl.mechanism == "OAUTHBEARER";
  std::string secret = call.secret(bearer ? sasl.bearer_token : sasl.password_token);
  std::string message;
  try {
    if (sasl.mechanism == "PLAIN") message = "\0"s + sasl.username + "\0"s + secret;
    if (bearer) message = "n,,\1auth=Bearer "s + secret + "\1\1"s;
    if (message.empty())
      scram_login(connection, sasl, secret);
    else if (const std::string refusal = exchange(connection, 2, message); bearer && !refusal.empty())
      throw sdk::Failure(DRIFTD_UNAUTHENTICATED, "login: the broker refuses the bearer token: " + one_line(refusal));
  } catch (...) {
    wipe(secret);
    wipe(message);
    throw;
  }
  wipe(secret);
  wipe(message);
}

}  // namespace driftd::kafka
