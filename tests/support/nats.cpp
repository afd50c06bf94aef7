// SPDX-License-Identifier: Apache-2.0
#include "support/nats.hpp"

#include <arpa/inet.h>
#include <csignal>
#include <mutex>
#include <nats/nats.h>
#include <netinet/in.h>
#include <stdexcept>
#include <sys/socket.h>
#include <utility>
#include <unistd.h>

namespace driftd::test {
namespace {

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

}  // namespace

NatsServer::NatsServer() : port_(free_port()) { start(); }

void NatsServer::start() {
  child_ = Child({"nats-server", "-a", "127.0.0.1", "-p", std::to_string(port_), "-js", "-sd", dir_.file("js")},
                 {dir_.file("nats.log"), {}, {}});
  if (!eventually([this] { return reachable(); })) throw std::runtime_error("nats-server: " + read_file(dir_.file("nats.log")));
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
  const int usual = std::exchange(port_, free_port());
  start();
  natsConnection* connection = nullptr;
  jsCtx* stream = nullptr;
  must(natsConnection_ConnectTo(&connection, url().c_str()), "connect");
  must(natsConnection_JetStream(&stream, connection, nullptr), "JetStream");
  for (int i = 0; i < count; ++i) must(js_Publish(nullptr, stream, subject.c_str(), "x", 1, nullptr, nullptr), "publish");
  jsCtx_Destroy(stream);
  natsConnection_Destroy(connection);
  stop();
  port_ = usual;
}

struct NatsSubscriber::State {
  mutable std::mutex mutex;
  std::vector<NatsReceived> received;
  natsConnection* connection = nullptr;
  natsSubscription* subscription = nullptr;
};

NatsSubscriber::NatsSubscriber(const std::string& url, const std::string& subject) : state_(std::make_unique<State>()) {
  must(natsConnection_ConnectTo(&state_->connection, url.c_str()), "connect to " + url);
  const natsMsgHandler handler = [](natsConnection*, natsSubscription*, natsMsg* message, void* closure) {
    auto* state = static_cast<State*>(closure);
    const std::lock_guard lock(state->mutex);
    state->received.push_back(copy(message));
    natsMsg_Destroy(message);
  };
  must(natsConnection_Subscribe(&state_->subscription, state_->connection, subject.c_str(), handler, state_.get()), subject);
  must(natsConnection_Flush(state_->connection), "flush");
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

std::vector<NatsReceived> stream_contents(const std::string& url, const std::string& stream) {
  natsConnection* connection = nullptr;
  jsCtx* context = nullptr;
  jsStreamInfo* info = nullptr;
  must(natsConnection_ConnectTo(&connection, url.c_str()), "connect to " + url);
  must(natsConnection_JetStream(&context, connection, nullptr), "JetStream");
  must(js_GetStreamInfo(&info, context, stream.c_str(), nullptr, nullptr), "stream " + stream);
  std::vector<NatsReceived> out;
  for (std::uint64_t seq = info->State.FirstSeq; seq <= info->State.LastSeq && info->State.Msgs > 0; ++seq) {
    natsMsg* message = nullptr;
    if (js_GetMsg(&message, context, stream.c_str(), seq, nullptr, nullptr) != NATS_OK) continue;
    out.push_back(copy(message));
    natsMsg_Destroy(message);
  }
  jsStreamInfo_Destroy(info);
  jsCtx_Destroy(context);
  natsConnection_Destroy(connection);
  return out;
}

}  // namespace driftd::test
