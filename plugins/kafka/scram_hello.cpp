// SPDX-License-Identifier: Apache-2.0
#include "kafka/scram_hello.hpp"

#include "kafka/broker_connection.hpp"
#include "kafka/conf.hpp"
#include "kafka/scram_wire.hpp"

namespace driftd::kafka {
namespace {

/// Progress of a hello.
struct Progress {
  bool sent = false;      ///< the broker may count it as the start of a login
  bool answered = false;  ///< it answered
};

ServerFirst hello_at(sdk::Call& call, const Settings& settings, const std::string& server, const ScramName& of,
                     Progress& progress) {
  BrokerConnection connection(call, settings, server, "SCRAM hello");
  progress.sent = true;
  connection.send(handshake_request(1, of.mechanism));
  const std::string handshake = connection.answer();
  progress.answered = true;
  parse_handshake(handshake, 1, of.mechanism);
  const std::string nonce = make_nonce();
  connection.send(authenticate_request(2, client_first(of.user, nonce)));
  std::string message = parse_authenticate(connection.answer(), 2);
  const ServerFirst out = parse_server_first(message, nonce);
  wipe(message);
  return out;
}

/// Sends the hello to the first server that accepts a connection.
ServerFirst hello_at_any(sdk::Call& call, const Settings& settings, const std::vector<std::string>& servers,
                         const ScramName& of, Progress& progress) {
  if (servers.empty()) throw sdk::Failure(DRIFTD_UNAVAILABLE, "the cluster names no broker to begin a login at");
  for (std::size_t i = 0;; ++i) {
    try {
      return hello_at(call, settings, servers[i], of, progress);
    } catch (const sdk::Failure& e) {
      if (e.code != DRIFTD_UNAVAILABLE || progress.sent || i + 1 == servers.size()) throw;
    }
  }
}

bool concerns_the_call(driftd_status code) {
  return code == DRIFTD_CANCELLED || code == DRIFTD_DEADLINE || code == DRIFTD_INVALID || code == DRIFTD_INTERNAL;
}

}  // namespace

bool ScramHellos::claim_turn(const ScramName& of, std::int64_t now_ns) {
  const std::lock_guard lock(mutex_);
  Known& known = known_[of];
  const std::int64_t interval = std::chrono::nanoseconds(settings_.hello.interval).count();
  if (known.sent_ns && now_ns - *known.sent_ns < interval) return false;
  known.sent_ns = now_ns;
  return true;
}

void ScramHellos::forget() {
  const std::lock_guard lock(mutex_);
  known_.clear();
}

ScramHelloResult ScramHellos::result_for(sdk::Call& call, const ScramName& of, const std::vector<std::string>& brokers,
                                         bool may_ask) {
  if (!may_ask || !claim_turn(of, net::Steady::now().time_since_epoch().count())) {
    const std::lock_guard lock(mutex_);
    return known_[of].answer;
  }
  Progress progress;
  ScramHelloResult out;
  std::optional<sdk::Failure> whole;
  try {
    call.permit("requests");
    out.observed_ns = call.now_ns();
    const ServerFirst first = hello_at_any(
        call, settings_, settings_.hello.servers.empty() ? brokers : settings_.hello.servers, of, progress);
    out.salt = first.salt;
    out.iterations = first.iterations;
    out.outcome = {};
  } catch (const sdk::Failure& e) {
    out.outcome = {e.code, e.what()};
    if (concerns_the_call(e.code)) whole = e;
  }
  out.answered = progress.answered;
  const std::lock_guard lock(mutex_);
  Known& known = known_[of];
  if (!progress.sent) known.sent_ns.reset();  // nobody counted it: the next cycle may try again
  if (!whole) known.answer = out;
  if (whole) throw *whole;
  return out;
}

}  // namespace driftd::kafka
