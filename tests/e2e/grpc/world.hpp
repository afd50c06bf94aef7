// SPDX-License-Identifier: Apache-2.0
// A real agent with gRPC services over a Terraform state that the tests edit, and real gRPC clients and servers.
#pragma once

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <atomic>
#include <mutex>
#include <set>
#include <thread>

#include "driftd/v1/service.grpc.pb.h"
#include "support/agent.hpp"

namespace driftd::test {

using Event = v1::BackendChangeEvent;

/// The state file `platform` with topics, each of which is one resource and one event.
class Topics {
 public:
  explicit Topics(const TempDir& dir);
  /// Adds topics PREFIX0 … and replaces the file by rename.
  void add(const std::string& prefix, int count);
  const std::string& path() const { return path_; }
  const std::vector<std::string>& names() const { return names_; }

 private:
  void write() const;
  std::string path_;
  std::vector<std::string> names_;
};

/// Returns the topic's name if the event is about a topic, else an empty text.
std::string topic_of(const Event& event);

/// A Subscribe call whose messages a thread of its own reads.
class Reader {
 public:
  Reader(std::shared_ptr<grpc::Channel> channel, v1::SubscribeRequest request, const std::string& token = {});
  ~Reader();
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;
  std::vector<v1::SubscribeResponse> all() const;
  std::vector<Event> events() const;
  std::set<std::string> topics() const;
  std::string token() const;                  ///< of the last message
  std::optional<grpc::Status> ended() const;  ///< how the call ended

 private:
  grpc::ClientContext context_;
  std::unique_ptr<v1::BackendEvents::Stub> stub_;
  mutable std::mutex mutex_;
  std::vector<v1::SubscribeResponse> messages_;
  std::optional<grpc::Status> ended_;
  std::thread thread_;
};

/// A subscriber's server of BackendEventCallback on a port of its own, which can go and come back.
class CallbackServer final : public v1::BackendEventCallback::Service {
 public:
  CallbackServer() : port_(free_port()) {}
  ~CallbackServer() override { stop(); }
  void start();
  void stop();
  std::string endpoint() const { return "127.0.0.1:" + std::to_string(port_); }
  std::vector<v1::BackendEventNotification> received() const;
  std::set<std::string> topics() const;
  void refuse(const std::string& topic) { refused_ = topic; }  ///< answers INVALID_ARGUMENT to it; call before start()
  grpc::Status Notify(grpc::ServerContext*, const v1::BackendEventNotification* request, v1::BackendEventAck*) override;

 private:
  const int port_;
  std::string refused_;
  mutable std::mutex mutex_;
  std::vector<v1::BackendEventNotification> received_;
  std::unique_ptr<grpc::Server> server_;
};

/// A server whose kernel accepts connections, and which never reads or writes.
class DeafServer {
 public:
  DeafServer();
  ~DeafServer();
  DeafServer(const DeafServer&) = delete;
  DeafServer& operator=(const DeafServer&) = delete;
  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }
  bool called() const;  ///< a client is connected, and waits

 private:
  const int listener_;
  int port_ = 0;
};

/// Returns how long a call takes.
template <class Call>
std::chrono::milliseconds time_of(Call call) {
  const auto start = std::chrono::steady_clock::now();
  call();
  return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - start);
}

class GrpcLine : public testing::Test {
 protected:
  GrpcLine() : topics_(dir_), port_(free_port()) {}
  /// `body` is added below `grpc:`, each line with two blanks.
  Agent agent(const std::string& body = "  heartbeat: 1s\n", const std::string& sinks = {}) const;
  static void start(Agent& agent);
  std::string socket() const { return dir_.file("grpc.sock"); }
  std::shared_ptr<grpc::Channel> channel() const;  ///< to the Unix socket; a new connection each time
  std::unique_ptr<v1::BackendEvents::Stub> stub() const { return v1::BackendEvents::NewStub(channel()); }
  std::string port() const { return std::to_string(port_); }
  /// Returns how the agent sees a subscriber.
  v1::SubscriberStatus status_of(const std::string& subscriber) const;

  TempDir dir_;
  Topics topics_;
  int port_;
};

/// Returns the KiB of resident memory of a process.
long resident_kib(pid_t pid);

}  // namespace driftd::test
