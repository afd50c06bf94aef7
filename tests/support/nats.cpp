// SPDX-License-Identifier: Apache-2.0
#include "support/nats.hpp"

#include <arpa/inet.h>
#include <nats/nats.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>
#include <csignal>
#include <mutex>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>

namespace driftd::test {
namespace {

/// The defaults of nats.c, 2 s to connect and 5 s for an answer, are too short when all tests run at once.
constexpr std::int64_t kWaitMs = 30'000;

struct Free {
  void operator()(natsOptions* o) const { natsOptions_Destroy(o); }
  void operator()(natsConnection* c) const { natsConnection_Destroy(c); }
  void operator()(jsCtx* c) const { jsCtx_Destroy(c); }
  void operator()(jsStreamInfo* i) const { jsStreamInfo_Destroy(i); }
  void operator()(natsMsg* m) const { natsMsg_Destroy(m); }
};
template <class T>
using Owned = std::unique_ptr<T, Free>;

void must(natsStatus status, const std::string& doing) {
  if (status != NATS_OK) throw std::runtime_error(doing + ": " + natsStatus_GetText(status));
}

NatsReceived copy(natsMsg* message) {
  NatsReceived out;
  out.subject = natsMsg_GetSubject(message);
  out.body.assign(natsMsg_GetData(message), static_cast<std::size_t>(natsMsg_GetDataLength(message)));
  const char** keys = nullptr;
  int count = 0;
  if (natsMsgHeader_Keys(message, &keys, &count) != NATS_OK) return out;
  for (int i = 0; i < count; ++i) {
    const char* value = nullptr;
    natsMsgHeader_Get(message, keys[i], &value);
    out.headers.emplace_back(keys[i], value);
    if (out.headers.back().first == "Nats-Msg-Id") out.id = value;
    if (out.headers.back().first == "ce-id") out.ce_id = value;
  }
  std::free(static_cast<void*>(keys));
  return out;
}

void prove(natsOptions* options, const NatsAccess& access) {
  if (!access.ca.empty()) {
    must(natsOptions_LoadCATrustedCertificates(options, access.ca.c_str()), access.ca);
    must(natsOptions_LoadCertificatesChain(options, access.certificate.c_str(), access.key.c_str()), access.key);
  }
  if (!access.credentials.empty())
    must(natsOptions_SetUserCredentialsFromFiles(options, access.credentials.c_str(), nullptr), access.credentials);
  if (!access.nkey_public.empty())
    must(natsOptions_SetNKeyFromSeed(options, access.nkey_public.c_str(), access.nkey_seed_file.c_str()),
         access.nkey_seed_file);
}

Owned<natsConnection> connect_to(const std::vector<std::string>& urls, const NatsAccess& access = {}) {
  natsOptions* raw = nullptr;
  must(natsOptions_Create(&raw), "options");
  const Owned<natsOptions> options(raw);
  std::vector<const char*> servers;
  for (const auto& url : urls) servers.push_back(url.c_str());
  must(natsOptions_SetServers(raw, servers.data(), static_cast<int>(servers.size())), urls.front());
  prove(raw, access);
  must(natsOptions_SetTimeout(raw, kWaitMs), "time-out");
  natsConnection* connection = nullptr;
  must(natsConnection_Connect(&connection, raw), "connect to " + urls.front());
  return Owned<natsConnection>(connection);
}

Owned<natsConnection> connect_to(const std::string& url) { return connect_to(std::vector<std::string>{url}); }

Owned<jsCtx> jetstream_of(natsConnection* connection, std::int64_t wait_ms = kWaitMs) {
  jsOptions options;
  must(jsOptions_Init(&options), "options");
  options.Wait = wait_ms;
  jsCtx* context = nullptr;
  must(natsConnection_JetStream(&context, connection, &options), "JetStream");
  return Owned<jsCtx>(context);
}

}  // namespace

NatsServer::NatsServer(const std::string& config, std::string program)
    : program_(std::move(program)),
      port_(free_port()),
      configured_(!config.empty()) {
  if (configured_) dir_.write("nats.conf", config);
  start();
}

void NatsServer::configure(const std::string& config) {
  dir_.write("nats.conf", config);
  configured_ = true;
}

void NatsServer::start() {
  std::vector<std::string> command = {program_, "-a", "127.0.0.1", "-p", std::to_string(port_)};
  // A server that has JetStream by a flag alone ends it when it reloads its configuration.
  const bool has_store = configured_ && read_file(dir_.file("nats.conf")).find("store_dir") != std::string::npos;
  if (!has_store) command.insert(command.end(), {"-js", "-sd", dir_.file("js")});
  if (configured_) command.insert(command.end(), {"-c", dir_.file("nats.conf")});
  child_ = Child(command, {dir_.file("nats.log"), {}, {}});
  if (!eventually([this] { return reachable(); }))
    throw std::runtime_error("nats-server: " + read_file(dir_.file("nats.log")));
}

bool NatsServer::reachable() const {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port_));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const bool connected = ::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  ::close(fd);
  return connected;
}

void NatsServer::sigkill() { child_.kill(); }

void NatsServer::stop() {
  child_.signal(SIGTERM);
  child_.wait(std::chrono::seconds(20));
}

void NatsServer::wipe() { std::filesystem::remove_all(dir_.file("js")); }

void NatsServer::keep() {
  std::filesystem::remove_all(dir_.file("kept"));
  std::filesystem::copy(dir_.file("js"), dir_.file("kept"), std::filesystem::copy_options::recursive);
}

void NatsServer::put_back() {
  wipe();
  std::filesystem::copy(dir_.file("kept"), dir_.file("js"), std::filesystem::copy_options::recursive);
}

void NatsServer::intrude(const std::string& subject, int count) {
  const int own_port = std::exchange(port_, free_port());
  start();
  {
    const auto connection = connect_to(url());
    const auto stream = jetstream_of(connection.get());
    for (int i = 0; i < count; ++i)
      must(js_Publish(nullptr, stream.get(), subject.c_str(), "x", 1, nullptr, nullptr), "publish");
  }
  stop();
  port_ = own_port;
}

struct NatsSubscriber::State {
  mutable std::mutex mutex;
  std::vector<NatsReceived> received;
  natsConnection* connection = nullptr;
  natsSubscription* subscription = nullptr;
};

NatsSubscriber::NatsSubscriber(const std::string& url, const std::string& subject) : state_(std::make_unique<State>()) {
  state_->connection = connect_to(url).release();
  const natsMsgHandler handler = [](natsConnection*, natsSubscription*, natsMsg* message, void* closure) {
    const auto now = std::chrono::steady_clock::now();
    auto* state = static_cast<State*>(closure);
    const std::lock_guard lock(state->mutex);
    state->received.push_back(copy(message));
    state->received.back().at = now;
    natsMsg_Destroy(message);
  };
  must(natsConnection_Subscribe(&state_->subscription, state_->connection, subject.c_str(), handler, state_.get()),
       subject);
  must(natsConnection_FlushTimeout(state_->connection, kWaitMs), "flush");
}

NatsSubscriber::~NatsSubscriber() {
  natsConnection_Close(state_->connection);
  eventually([this] { return !natsSubscription_IsValid(state_->subscription); });
  natsSubscription_Destroy(state_->subscription);
  natsConnection_Destroy(state_->connection);
}

std::vector<NatsReceived> NatsSubscriber::received() const {
  const std::lock_guard lock(state_->mutex);
  return state_->received;
}

void change_stream(const std::string& url, const std::string& verb, const ForeignStream& stream) {
  nlohmann::json config = {{"name", stream.name},
                           {"retention", stream.work_queue ? "workqueue"
                                         : stream.interest ? "interest"
                                                           : "limits"},
                           {"storage", stream.memory ? "memory" : "file"},
                           {"no_ack", stream.no_ack},
                           {"sealed", stream.sealed},
                           {"max_msg_size", stream.max_msg_size},
                           {"max_bytes", stream.max_bytes},
                           {"discard", stream.discard_old ? "old" : "new"},
                           {"max_msgs", stream.max_msgs},
                           {"max_msgs_per_subject", stream.max_msgs_per_subject},
                           {"num_replicas", 1},
                           {"duplicate_window", stream.duplicate_window_ms * 1'000'000}};
  if (stream.discard_new_per_subject) config["discard_new_per_subject"] = true;
  if (stream.mirror.empty()) {
    config["subjects"] = stream.subjects;
  } else {
    config["mirror"] = {{"name", stream.mirror}};
  }
  const std::string body = verb == "DELETE" || verb == "PURGE" ? "" : config.dump();
  const auto connection = connect_to(url);
  natsMsg* raw = nullptr;
  const std::string subject = "$JS.API.STREAM." + verb + "." + stream.name;
  must(natsConnection_RequestString(&raw, connection.get(), subject.c_str(), body.c_str(), kWaitMs), subject);
  const Owned<natsMsg> answer(raw);
  const auto reply =
      nlohmann::json::parse(std::string(natsMsg_GetData(raw), static_cast<std::size_t>(natsMsg_GetDataLength(raw))));
  if (reply.contains("error")) throw std::runtime_error(subject + ": " + reply["error"].dump());
}

std::int64_t max_payload(const std::string& url) { return natsConnection_GetMaxPayload(connect_to(url).get()); }

std::vector<NatsReceived> stream_contents(const std::string& url, const std::string& stream) {
  return stream_contents(std::vector<std::string>{url}, {}, stream);
}

std::optional<StreamState> stream_state(const std::vector<std::string>& urls, const NatsAccess& access,
                                        const std::string& stream) {
  try {
    constexpr std::int64_t kLeaderWaitMs = 2'000;  // a cluster without a leader does not answer
    const auto connection = connect_to(urls, access);
    const auto context = jetstream_of(connection.get(), kLeaderWaitMs);
    jsStreamInfo* raw = nullptr;
    const natsStatus found = js_GetStreamInfo(&raw, context.get(), stream.c_str(), nullptr, nullptr);
    if (found == NATS_NOT_FOUND) return StreamState{};
    must(found, "stream " + stream);
    const Owned<jsStreamInfo> info(raw);
    const bool led = info->Cluster != nullptr && info->Cluster->Leader != nullptr;
    return StreamState{led ? info->Cluster->Leader : "", static_cast<int>(info->Config->Replicas)};
  } catch (const std::runtime_error&) {  // no server, or no leader of JetStream at the moment
    return std::nullopt;
  }
}

std::vector<NatsReceived> stream_contents(const std::vector<std::string>& urls, const NatsAccess& access,
                                          const std::string& stream) {
  const auto connection = connect_to(urls, access);
  const auto context = jetstream_of(connection.get());
  jsStreamInfo* raw = nullptr;
  const natsStatus found = js_GetStreamInfo(&raw, context.get(), stream.c_str(), nullptr, nullptr);
  if (found == NATS_NOT_FOUND) return {};  // a writer makes the stream with its first event
  must(found, "stream " + stream);
  const Owned<jsStreamInfo> info(raw);
  std::vector<NatsReceived> out;
  for (std::uint64_t seq = info->State.FirstSeq; seq <= info->State.LastSeq && info->State.Msgs > 0; ++seq) {
    natsMsg* one = nullptr;
    const natsStatus got = js_GetMsg(&one, context.get(), stream.c_str(), seq, nullptr, nullptr);
    if (got == NATS_NOT_FOUND) continue;  // deleted
    must(got, "message " + std::to_string(seq) + " of " + stream);
    const Owned<natsMsg> message(one);
    out.push_back(copy(message.get()));
  }
  return out;
}

}  // namespace driftd::test
