// SPDX-License-Identifier: Apache-2.0
#include "nats_link.hpp"

#include <algorithm>
#include <list>
#include <mutex>
#include <random>
#include <vector>

namespace driftd::consumer {
namespace {

constexpr std::int64_t kApiWaitMs = 3'000;
constexpr std::int64_t kConnectMs = 2'000;
constexpr std::int64_t kPingMs = 20'000;
constexpr double kFirstReconnectMs = 100, kMaxReconnectMs = 5'000;

/// Returns the delay before a reconnect, with jitter: all consumers lose a server at the same moment. nats.c calls it
/// on its own thread.
std::int64_t reconnect_delay(natsConnection*, int attempts, void*) {
  thread_local std::minstd_rand random{std::random_device{}()};
  const double bound =
      std::min(kMaxReconnectMs, kFirstReconnectMs * static_cast<double>(1 << std::clamp(attempts - 1, 0, 10)));
  return static_cast<std::int64_t>(std::uniform_real_distribution<double>(bound / 2, bound)(random));
}

void on_connected(natsConnection*, void* closure) { ++*static_cast<std::atomic<std::uint64_t>*>(closure); }
/// Without a handler the library prints to stderr. What fails is seen by the call that fails.
void on_error(natsConnection*, natsSubscription*, natsStatus, void*) {}

natsStatus set_identity(natsOptions* options, const NatsAccess& access) {
  natsStatus s = NATS_OK;
  if (!access.user.empty()) {
    s = natsOptions_SetUserInfo(options, access.user.c_str(), access.password.reveal().c_str());
  }
  if (s == NATS_OK && !access.token.empty()) s = natsOptions_SetToken(options, access.token.reveal().c_str());
  if (s == NATS_OK && !access.credentials_file.empty()) {
    s = natsOptions_SetUserCredentialsFromFiles(options, access.credentials_file.c_str(), nullptr);
  }
  if (s == NATS_OK && access.tls) s = natsOptions_SetSecure(options, true);
  if (s == NATS_OK && !access.tls_ca.empty()) {
    s = natsOptions_LoadCATrustedCertificates(options, access.tls_ca.c_str());
  }
  if (s == NATS_OK && !access.tls_cert.empty()) {
    s = natsOptions_LoadCertificatesChain(options, access.tls_cert.c_str(), access.tls_key.c_str());
  }
  return s;
}

natsStatus set_reliability(natsOptions* options, std::atomic<std::uint64_t>* connections) {
  natsStatus s = natsOptions_SetMaxReconnect(options, -1);
  if (s == NATS_OK) s = natsOptions_SetCustomReconnectDelay(options, reconnect_delay, nullptr);
  if (s == NATS_OK) s = natsOptions_SetReconnectBufSize(options, 1);  // an earlier request is of no use afterwards
  if (s == NATS_OK) s = natsOptions_SetFailRequestsOnDisconnect(options, true);
  if (s == NATS_OK) s = natsOptions_SetPingInterval(options, kPingMs);
  if (s == NATS_OK) s = natsOptions_SetMaxPingsOut(options, 2);
  if (s == NATS_OK) s = natsOptions_SetTimeout(options, kConnectMs);
  if (s == NATS_OK) s = natsOptions_SetErrorHandler(options, on_error, nullptr);
  if (s == NATS_OK) s = natsOptions_SetReconnectedCB(options, on_connected, connections);
  if (s == NATS_OK) s = natsOptions_SetRetryOnFailedConnect(options, true, on_connected, connections);
  return s;
}

}  // namespace

std::string shown(const std::vector<std::string>& servers) {
  std::string out;
  for (const auto& server : servers) {
    const std::size_t scheme = server.find("://"), at = server.rfind('@');
    const std::size_t from = scheme == server.npos ? 0 : scheme + 3;
    out += (out.empty() ? "" : ",") +
           (at == server.npos || at < from ? server : server.substr(0, from) + server.substr(at + 1));
  }
  return out;
}

Result<std::unique_ptr<NatsLink>> NatsLink::open(const NatsAccess& access, const std::string& name) {
  std::unique_ptr<NatsLink> out(new NatsLink(access));
  natsOptions* raw = nullptr;
  if (natsOptions_Create(&raw) != NATS_OK) return fail(Code::internal, "NATS: no memory for options");
  const Owned<natsOptions> options(raw);
  std::vector<const char*> servers;
  for (const auto& server : access.servers) servers.push_back(server.c_str());
  natsStatus status = natsOptions_SetServers(raw, servers.data(), static_cast<int>(servers.size()));
  if (status == NATS_OK) status = natsOptions_SetName(raw, ("driftd consumer " + name).c_str());
  if (status == NATS_OK) status = set_reliability(raw, out->connections_);
  if (status == NATS_OK) status = set_identity(raw, access);
  natsConnection* connection = nullptr;
  if (status == NATS_OK) status = natsConnection_Connect(&connection, raw);
  out->connection_.reset(connection);
  if (status != NATS_OK && status != NATS_NOT_YET_CONNECTED) {
    return fail(Code::invalid, "NATS settings for " + shown(access.servers) + ": " + natsStatus_GetText(status));
  }
  jsOptions js;
  jsOptions_Init(&js);
  js.Wait = kApiWaitMs;
  if (!access.domain.empty()) js.Domain = access.domain.c_str();
  jsCtx* context = nullptr;
  status = natsConnection_JetStream(&context, connection, &js);
  out->jetstream_.reset(context);
  if (status != NATS_OK) return fail(Code::invalid, std::string("NATS: JetStream: ") + natsStatus_GetText(status));
  return out;
}

NatsLink::NatsLink(const NatsAccess& access) : access_(access) {
  static std::mutex mutex;
  static auto& all = *new std::list<std::atomic<std::uint64_t>>;  // never destroyed, see connections_
  const std::lock_guard lock(mutex);
  connections_ = &all.emplace_back(0);
}

NatsLink::~NatsLink() { close(); }

bool NatsLink::connected() const { return natsConnection_Status(connection_.get()) == NATS_CONN_STATUS_CONNECTED; }

void NatsLink::close() { natsConnection_Close(connection_.get()); }

}  // namespace driftd::consumer
