// SPDX-License-Identifier: Apache-2.0
#include "sinks/nats/broker.hpp"

#include <algorithm>
#include <random>

#include "sinks/nats/failure_text.hpp"

namespace driftd::sinks {
namespace {

struct FreeOptions {
  void operator()(natsOptions* o) const { natsOptions_Destroy(o); }
};
struct FreeStatistics {
  void operator()(natsStatistics* s) const { natsStatistics_Destroy(s); }
};
using Options = std::unique_ptr<natsOptions, FreeOptions>;
using Statistics = std::unique_ptr<natsStatistics, FreeStatistics>;

constexpr std::int64_t kApiWaitMs = 3'000;
constexpr std::int64_t kPingMs = 20'000;
constexpr std::int64_t kWriteDeadlineMs = 10'000;
constexpr std::int64_t kMaxPending = 4'096;  // messages; more than a sink runner has in flight, so this limit is never
                                             // reached

/// A thread that spins for a lock of the library takes the core from the thread that holds it (its default is 2,000).
constexpr std::int64_t kLockSpins = 0;
constexpr double kFirstReconnectMs = 250;
constexpr double kMaxReconnectMs = 5'000;  // waiting events should arrive within seconds after the broker returns

/// Returns the delay before a reconnect: 250 ms ×2 → 5 s, ±20 %. nats.c calls it on its own thread.
std::int64_t reconnect_delay(natsConnection*, int attempts, void*) {
  thread_local std::minstd_rand random{std::random_device{}()};
  const double base =
      std::min(kMaxReconnectMs, kFirstReconnectMs * static_cast<double>(1 << std::clamp(attempts - 1, 0, 10)));
  return static_cast<std::int64_t>(base * std::uniform_real_distribution<double>(0.8, 1.2)(random));
}

bool over_tls(const NatsSettings& settings) {
  const auto names_it = [](const std::string& server) { return server.starts_with("tls://"); };
  return settings.tls || std::any_of(settings.servers.begin(), settings.servers.end(), names_it);
}

natsStatus set_reliability(natsOptions* options, const NatsSettings& settings, Inbox& inbox) {
  natsStatus s = natsOptions_SetMaxReconnect(options, -1);
  if (s == NATS_OK) s = natsOptions_SetCustomReconnectDelay(options, reconnect_delay, nullptr);
  if (s == NATS_OK)
    s = natsOptions_SetReconnectBufSize(options, 1);  // the agent retries itself, so the library must buffer nothing
  if (s == NATS_OK) s = natsOptions_SetFailRequestsOnDisconnect(options, true);
  if (s == NATS_OK) s = natsOptions_SetPingInterval(options, kPingMs);
  if (s == NATS_OK) s = natsOptions_SetMaxPingsOut(options, 2);
  if (s == NATS_OK) s = natsOptions_SetTimeout(options, settings.connect_timeout.count());
  if (s == NATS_OK) s = natsOptions_SetErrorHandler(options, &Inbox::on_error, &inbox);
  if (s == NATS_OK) s = natsOptions_SetDisconnectedCB(options, &Inbox::on_disconnected, &inbox);
  if (s == NATS_OK) s = natsOptions_SetReconnectedCB(options, &Inbox::on_reconnected, &inbox);
  if (s == NATS_OK) s = natsOptions_SetClosedCB(options, &Inbox::on_closed, &inbox);
  // Ends a write to a broker that does not read, together with its connection. Not with TLS, where the library would
  // loop instead.
  if (s == NATS_OK && !over_tls(settings)) s = natsOptions_SetWriteDeadline(options, kWriteDeadlineMs);
  return s;
}

natsStatus set_identity(natsOptions* options, const NatsSettings& settings) {
  natsStatus s = NATS_OK;
  if (!settings.user.empty()) s = natsOptions_SetUserInfo(options, settings.user.c_str(), settings.password.c_str());
  if (s == NATS_OK && !settings.token.empty()) s = natsOptions_SetToken(options, settings.token.c_str());
  if (s == NATS_OK && !settings.credentials_file.empty()) {
    s = natsOptions_SetUserCredentialsFromFiles(options, settings.credentials_file.c_str(), nullptr);
  }
  if (s == NATS_OK && !settings.nkey_seed_file.empty()) {
    s = natsOptions_SetNKeyFromSeed(options, settings.nkey_public.c_str(), settings.nkey_seed_file.c_str());
  }
  if (s == NATS_OK && settings.tls) s = natsOptions_SetSecure(options, true);
  if (s == NATS_OK && !settings.tls_ca.empty()) {
    s = natsOptions_LoadCATrustedCertificates(options, settings.tls_ca.c_str());
  }
  if (s == NATS_OK && !settings.tls_cert.empty()) {
    s = natsOptions_LoadCertificatesChain(options, settings.tls_cert.c_str(), settings.tls_key.c_str());
  }
  return s;
}

}  // namespace

std::uint64_t Broker::reconnects() const {
  natsStatistics* raw = nullptr;
  if (natsStatistics_Create(&raw) != NATS_OK) return ~std::uint64_t{0};
  const Statistics statistics(raw);
  std::uint64_t count = 0;
  if (natsConnection_GetStats(connection.get(), raw) != NATS_OK) return ~std::uint64_t{0};
  natsStatistics_GetCounts(raw, nullptr, nullptr, nullptr, nullptr, &count);
  return count;
}

Error failure(const NatsSettings& settings, natsStatus status, int code, const std::string& subject,
              const Inbox* inbox) {
  std::string text = "NATS at " + shown_urls(settings.servers) + ": ";
  if (inbox != nullptr && status == NATS_TIMEOUT) {
    if (inbox->denied(subject)) return {Code::denied, text + "the account may not publish to " + subject};
    const std::string replies = inbox->denied_reply();
    if (!replies.empty())
      return {Code::denied, text + "the account may not subscribe to " + replies + ", where answers come"};
  }
  text += status_text(status) + explain(code);
  if (status == NATS_NO_RESPONDERS)
    text += " on " + subject + ": JetStream is not enabled for this account, or has no leader";
  if (status == NATS_TIMEOUT && !subject.empty()) text += " of " + subject;
  const bool denied = status == NATS_CONNECTION_AUTH_FAILED || status == NATS_NOT_PERMITTED;
  return {denied ? Code::denied : Code::unavailable, std::move(text)};
}

Result<Broker> connect(const NatsSettings& settings, const std::string& name, Inbox& inbox) {
  static const natsStatus library = nats_Open(kLockSpins);
  natsOptions* raw = nullptr;
  if (library != NATS_OK || natsOptions_Create(&raw) != NATS_OK)
    return fail(Code::internal, "NATS: no memory for options");
  const Options options(raw);
  std::vector<const char*> servers;
  for (const auto& server : settings.servers) servers.push_back(server.c_str());
  natsStatus status = natsOptions_SetServers(raw, servers.data(), static_cast<int>(servers.size()));
  if (status == NATS_OK) status = natsOptions_SetName(raw, ("driftd " + name).c_str());
  if (status == NATS_OK) status = set_reliability(raw, settings, inbox);
  if (status == NATS_OK) status = set_identity(raw, settings);
  if (status != NATS_OK) {
    return fail(Code::invalid, "NATS settings for " + shown_urls(settings.servers) + ": " + natsStatus_GetText(status));
  }
  natsConnection* connection = nullptr;
  status = natsConnection_Connect(&connection, raw);
  if (status != NATS_OK) return fail(failure(settings, status, 0, "", nullptr));
  Broker broker{Connection(connection), nullptr};
  inbox.watch(connection);
  if (!settings.jetstream) return broker;
  jsOptions js;
  jsOptions_Init(&js);
  js.Wait = kApiWaitMs;
  if (!settings.domain.empty()) js.Domain = settings.domain.c_str();
  js.PublishAsync.MaxPending = kMaxPending;
  js.PublishAsync.AckHandler = &Inbox::on_ack;
  js.PublishAsync.AckHandlerClosure = &inbox;
  jsCtx* stream = nullptr;
  status = natsConnection_JetStream(&stream, connection, &js);
  if (status != NATS_OK) return fail(failure(settings, status, 0, "", nullptr));
  broker.stream.reset(stream);
  return broker;
}

}  // namespace driftd::sinks
