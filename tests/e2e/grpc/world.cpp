// SPDX-License-Identifier: Apache-2.0
#include "world.hpp"

#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <filesystem>
#include <fstream>

namespace driftd::test {

Topics::Topics(const TempDir& dir) : path_(dir.write("infra/terraform.tfstate", "")) { add("first", 1); }

void Topics::add(const std::string& prefix, int count) {
  for (int i = 0; i < count; ++i) names_.push_back(prefix + std::to_string(i));
  write();
}

void Topics::write() const {
  {
    std::ofstream out(path_ + ".next", std::ios::trunc);
    out << R"({"version":4,"terraform_version":"1.9.0","serial":7,"lineage":"abc","outputs":{},"resources":[)";
    const char* comma = "";
    for (const auto& name : names_) {
      out << comma << R"({"mode":"managed","type":"kafka_topic","name":")" << name
          << R"(","provider":"p","instances":[{"attributes":{"partitions":3}}]})";
      comma = ",";
    }
    out << "]}";
  }
  std::filesystem::rename(path_ + ".next", path_);
}

std::string topic_of(const Event& event) {
  constexpr std::string_view kStart = "kafka_topic.";
  const std::string& id = event.resource_id();
  return id.starts_with(kStart) ? id.substr(kStart.size()) : "";
}

Reader::Reader(std::shared_ptr<grpc::Channel> channel, v1::SubscribeRequest request, const std::string& token)
    : stub_(v1::BackendEvents::NewStub(std::move(channel))) {
  if (!token.empty()) context_.AddMetadata("authorization", "Bearer " + token);
  context_.set_wait_for_ready(true);
  thread_ = std::thread([this, request = std::move(request)] {
    const auto stream = stub_->Subscribe(&context_, request);
    v1::SubscribeResponse message;
    while (stream->Read(&message)) {
      const std::lock_guard lock(mutex_);
      messages_.push_back(message);
    }
    const grpc::Status status = stream->Finish();
    const std::lock_guard lock(mutex_);
    ended_ = status;
  });
}

Reader::~Reader() {
  context_.TryCancel();
  thread_.join();
}

std::vector<v1::SubscribeResponse> Reader::all() const {
  const std::lock_guard lock(mutex_);
  return messages_;
}

std::vector<Event> Reader::events() const {
  std::vector<Event> out;
  const std::lock_guard lock(mutex_);
  for (const auto& message : messages_) {
    if (message.has_event()) out.push_back(message.event());
  }
  return out;
}

std::set<std::string> Reader::topics() const {
  std::set<std::string> out;
  const std::lock_guard lock(mutex_);
  for (const auto& message : messages_) {
    if (message.has_event() && !topic_of(message.event()).empty()) out.insert(topic_of(message.event()));
  }
  return out;
}

std::string Reader::token() const {
  const std::lock_guard lock(mutex_);
  return messages_.empty() ? "" : messages_.back().resume_token();
}

std::optional<grpc::Status> Reader::ended() const {
  const std::lock_guard lock(mutex_);
  return ended_;
}

void CallbackServer::start() {
  grpc::ServerBuilder builder;
  builder.AddListeningPort(endpoint(), grpc::InsecureServerCredentials());
  builder.RegisterService(this);
  server_ = builder.BuildAndStart();
  ASSERT_TRUE(server_);
}

void CallbackServer::stop() {
  if (server_) server_->Shutdown(std::chrono::system_clock::now());
  server_.reset();
}

grpc::Status CallbackServer::Notify(grpc::ServerContext*, const v1::BackendEventNotification* request,
                                    v1::BackendEventAck*) {
  const std::lock_guard lock(mutex_);
  if (!refused_.empty() && topic_of(request->event()) == refused_) {
    return {grpc::StatusCode::INVALID_ARGUMENT, "not this one"};
  }
  received_.push_back(*request);
  return grpc::Status::OK;
}

std::vector<v1::BackendEventNotification> CallbackServer::received() const {
  const std::lock_guard lock(mutex_);
  return received_;
}

std::set<std::string> CallbackServer::topics() const {
  std::set<std::string> out;
  for (const auto& one : received()) {
    if (!topic_of(one.event()).empty()) out.insert(topic_of(one.event()));
  }
  return out;
}

DeafServer::DeafServer() : listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* any = reinterpret_cast<sockaddr*>(&address);
  if (::bind(listener_, any, size) != 0 || ::listen(listener_, 64) != 0 || ::getsockname(listener_, any, &size) != 0) {
    throw std::runtime_error("no listening socket");
  }
  port_ = ntohs(address.sin_port);
}

DeafServer::~DeafServer() { ::close(listener_); }

bool DeafServer::called() const {
  pollfd waiting{listener_, POLLIN, 0};
  return ::poll(&waiting, 1, 0) == 1;
}

Agent GrpcLine::agent(const std::string& body, const std::string& sinks) const {
  return Agent(dir_,
               "defaults:\n  interval: 100ms\nbackends:\n  - name: platform\n    provider: terraform\n    settings: "
               "{ path: " +
                   topics_.path() + " }\n    labels: { team: orders }\ngrpc:\n  socket: " + socket() + "\n" + body +
                   (sinks.empty() ? "" : "sinks:\n" + sinks));
}

void GrpcLine::start(Agent& agent) {
  agent.start();
  ASSERT_TRUE(eventually([&] { return agent.established({"platform"}); }, std::chrono::seconds(60))) << agent.log();
}

std::shared_ptr<grpc::Channel> GrpcLine::channel() const {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 200);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  return grpc::CreateCustomChannel("unix:" + socket(), grpc::InsecureChannelCredentials(), arguments);
}

v1::SubscriberStatus GrpcLine::status_of(const std::string& subscriber) const {
  grpc::ClientContext context;
  v1::GetSubscriptionRequest request;
  request.set_subscriber_id(subscriber);
  v1::SubscriberStatus out;
  stub()->GetSubscription(&context, request, &out);
  return out;
}

long resident_kib(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/status");
  std::string word;
  while (file >> word) {
    long kib = 0;
    if (word == "VmRSS:" && file >> kib) return kib;
  }
  return -1;
}

}  // namespace driftd::test
