// SPDX-License-Identifier: Apache-2.0
#include "sinks/nats/broker.hpp"

#include <algorithm>
#include <random>

#include "base/secret_text.hpp"

namespace driftd::sinks {

std::string status_text(natsStatus status) {
  const bool lost = status == NATS_INSUFFICIENT_BUFFER || status == NATS_CONNECTION_DISCONNECTED;
  return lost ? "not connected" : natsStatus_GetText(status);
}

namespace {

struct FreeOptions { void operator()(natsOptions* o) const { natsOptions_Destroy(o); } };
struct FreeInfo { void operator()(jsStreamInfo* i) const { jsStreamInfo_Destroy(i); } };
using Options = std::unique_ptr<natsOptions, FreeOptions>;
using Info = std::unique_ptr<jsStreamInfo, FreeInfo>;

constexpr std::int64_t kApiWaitMs = 3'000;
constexpr std::int64_t kPingMs = 20'000;
constexpr std::int64_t kMaxPending = 4'096;  // above what a lane has in flight: never a stall

/// nats.c asks on its own thread; 250 ms ×2 → 30 s, ±20 %.
std::int64_t reconnect_delay(natsConnection*, int attempts, void*) {
  thread_local std::minstd_rand random{std::random_device{}()};
  const double base = std::min(30'000.0, 250.0 * static_cast<double>(1 << std::clamp(attempts - 1, 0, 10)));
  return static_cast<std::int64_t>(base * std::uniform_real_distribution<double>(0.8, 1.2)(random));
}

/// Errors reach us by the calls that fail; the default handler would print to stderr.
void on_error(natsConnection*, natsSubscription*, natsStatus, void*) {}

natsStatus set_reliability(natsOptions* options, const NatsSettings& settings) {
  natsStatus s = natsOptions_SetMaxReconnect(options, -1);
  if (s == NATS_OK) s = natsOptions_SetCustomReconnectDelay(options, reconnect_delay, nullptr);
  if (s == NATS_OK) s = natsOptions_SetReconnectBufSize(options, 1);  // our own retries, nothing behind them
  if (s == NATS_OK) s = natsOptions_SetFailRequestsOnDisconnect(options, true);
  if (s == NATS_OK) s = natsOptions_SetSendAsap(options, true);  // else a thread of the library waits 1 ms for more
  if (s == NATS_OK) s = natsOptions_SetPingInterval(options, kPingMs);
  if (s == NATS_OK) s = natsOptions_SetMaxPingsOut(options, 2);
  if (s == NATS_OK) s = natsOptions_SetTimeout(options, settings.connect_timeout.count());
  if (s == NATS_OK) s = natsOptions_SetErrorHandler(options, on_error, nullptr);
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

/// Without user-info and query: `nats://user:pass@host` must not reach a log. The client takes servers without a scheme.
std::string names_of(const std::vector<std::string>& servers) {
  std::string out;
  for (const auto& server : servers) {
    const bool url = server.find("://") != std::string::npos;
    out += (out.empty() ? "" : ", ") + (url ? without_credentials(server) : without_credentials("nats://" + server).substr(7));
  }
  return out;
}

Error unreachable(const NatsSettings& settings, natsStatus status, int code) {
  std::string text = "NATS at " + names_of(settings.servers) + ": " + status_text(status);
  if (code != 0) text += " (JetStream error " + std::to_string(code) + ")";
  const bool denied = status == NATS_CONNECTION_AUTH_FAILED || status == NATS_NOT_PERMITTED;
  return {denied ? Code::denied : Code::unavailable, std::move(text)};
}

natsStatus add_stream(jsCtx* stream, const NatsSettings& settings, Info& info, jsErrCode& code) {
  const char* subjects[] = {"backend.>", "driftd.agent.>"};
  jsStreamConfig config;
  jsStreamConfig_Init(&config);
  config.Name = settings.stream.c_str();
  config.Description = "Drift events of driftd";
  config.Subjects = subjects;
  config.SubjectsLen = 2;
  config.Storage = js_FileStorage;
  config.Discard = js_DiscardNew;
  config.MaxAge = std::chrono::nanoseconds(settings.max_age).count();
  config.Duplicates = std::chrono::nanoseconds(settings.duplicate_window).count();
  config.Replicas = settings.replicas;
  jsStreamInfo* raw = nullptr;
  const natsStatus status = js_AddStream(&raw, stream, &config, nullptr, &code);
  info.reset(raw);
  return status;
}

enum class Found { ours, not_ours, unknown };

Found look(jsCtx* stream, const NatsSettings& settings, const jsStreamState& state, const Mark& mark) {
  if (mark.stream_seq < state.FirstSeq && state.Msgs != 0) return Found::ours;  // aged out: it was there
  if (mark.stream_seq > state.LastSeq) return Found::not_ours;
  natsMsg* raw = nullptr;
  jsErrCode code{};
  const natsStatus status = js_GetMsg(&raw, stream, settings.stream.c_str(), mark.stream_seq, nullptr, &code);
  const Message message(raw);
  if (status == NATS_NOT_FOUND || code == JSNoMessageFoundErr) {
    return mark.stream_seq < state.FirstSeq ? Found::ours : Found::not_ours;
  }
  if (status != NATS_OK) return Found::unknown;
  const char* id = nullptr;
  if (natsMsgHeader_Get(message.get(), "Nats-Msg-Id", &id) != NATS_OK || id == nullptr) return Found::not_ours;
  return mark.id == id ? Found::ours : Found::not_ours;
}

}  // namespace

Result<Broker> connect(const NatsSettings& settings, const std::string& name, Inbox& inbox) {
  natsOptions* raw = nullptr;
  if (natsOptions_Create(&raw) != NATS_OK) return fail(Code::internal, "NATS: no memory for options");
  const Options options(raw);
  std::vector<const char*> servers;
  for (const auto& server : settings.servers) servers.push_back(server.c_str());
  natsStatus status = natsOptions_SetServers(raw, servers.data(), static_cast<int>(servers.size()));
  if (status == NATS_OK) status = natsOptions_SetName(raw, ("driftd " + name).c_str());
  if (status == NATS_OK) status = set_reliability(raw, settings);
  if (status == NATS_OK) status = set_identity(raw, settings);
  if (status != NATS_OK) {
    return fail(Code::invalid, "NATS settings for " + names_of(settings.servers) + ": " + natsStatus_GetText(status));
  }
  natsConnection* connection = nullptr;
  status = natsConnection_Connect(&connection, raw);
  if (status != NATS_OK) return fail(unreachable(settings, status, 0));
  Broker broker{Connection(connection), nullptr};
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
  if (status != NATS_OK) return fail(unreachable(settings, status, 0));
  broker.stream.reset(stream);
  return broker;
}

Result<Inspection> inspect(const Broker& broker, const NatsSettings& settings, const Marks& marks,
                           const std::string& known_created) {
  jsStreamInfo* raw = nullptr;
  jsErrCode code{};
  natsStatus status = js_GetStreamInfo(&raw, broker.stream.get(), settings.stream.c_str(), nullptr, &code);
  Info info(raw);
  if (code == JSStreamNotFoundErr && settings.create_stream) {
    code = {};
    status = add_stream(broker.stream.get(), settings, info, code);
  }
  if (status != NATS_OK) return fail(unreachable(settings, status, static_cast<int>(code)));
  Inspection out;
  out.created = std::to_string(info->Created);
  if (!known_created.empty() && known_created != out.created) {
    out.rewind_to = 0;
    return out;
  }
  for (auto mark = marks.all().rbegin(); mark != marks.all().rend(); ++mark) {
    const Found found = look(broker.stream.get(), settings, info->State, *mark);
    if (found == Found::unknown) return fail(Code::unavailable, "NATS: cannot read stream " + settings.stream);
    if (found == Found::ours) {
      if (mark != marks.all().rbegin()) out.rewind_to = mark->safe;
      return out;
    }
  }
  if (!marks.all().empty()) out.rewind_to = 0;
  return out;
}

}  // namespace driftd::sinks
