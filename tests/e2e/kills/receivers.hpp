// SPDX-License-Identifier: Apache-2.0
// What each receiver got, as the ledger wants it, and the two gRPC receivers.
#pragma once

#include <grpcpp/grpcpp.h>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "driftd/v1/service.grpc.pb.h"
#include "ledger.hpp"
#include "support/http_receiver.hpp"
#include "support/kafka_records.hpp"
#include "support/nats.hpp"

namespace driftd::test {

/// Messages of the stream (without times, so all are of run 0) or of a subscriber of core NATS, which also gets what
/// JetStream drops as a duplicate.
Deliveries from_nats(const std::vector<NatsReceived>& messages, const Runs& runs);
/// Requests that were answered with 200.
Deliveries from_webhook(const std::vector<HttpReceived>& requests, const Runs& runs);
/// Records in the order of their partitions and offsets.
Deliveries from_kafka(const std::vector<KafkaReceived>& records, const Runs& runs);
/// Lines of a file. `sizes[n]` is the size of the file when run n had ended. Throws if a line is not an event.
Deliveries from_file(const std::string& path, const std::vector<std::size_t>& sizes);

/// An event and when it came.
struct Arrival {
  v1::BackendChangeEvent event;
  Runs::Time at;
};
Deliveries from_grpc(const std::vector<Arrival>& arrivals, const Runs& runs);

/// Returns a client's connection to a Unix socket. It tries again soon after the agent was killed.
std::shared_ptr<grpc::Channel> channel_to(const std::string& socket);

/// A subscriber's server of BackendEventCallback.
class CallbackReceiver final : public v1::BackendEventCallback::Service {
 public:
  explicit CallbackReceiver(int port);
  ~CallbackReceiver() override { server_->Shutdown(std::chrono::system_clock::now()); }
  std::string endpoint() const { return endpoint_; }
  std::vector<Arrival> arrivals() const;
  grpc::Status Notify(grpc::ServerContext*, const v1::BackendEventNotification* request, v1::BackendEventAck*) override;

 private:
  const std::string endpoint_;
  mutable std::mutex mutex_;
  std::vector<Arrival> arrivals_;
  std::unique_ptr<grpc::Server> server_;
};

/// Reads Subscribe from the oldest event on. Whenever the call ends, it calls again with the token of the last message
/// that it has dealt with.
class ResumingStream {
 public:
  explicit ResumingStream(std::string socket);
  ~ResumingStream();
  ResumingStream(const ResumingStream&) = delete;
  ResumingStream& operator=(const ResumingStream&) = delete;
  std::vector<Arrival> arrivals() const;
  /// What must not happen: gaps, and calls that end otherwise than by the agent's end. Empty if nothing did.
  std::string faults() const;

 private:
  void work();
  void deal_with(const v1::SubscribeResponse& message);

  const std::string socket_;
  mutable std::mutex mutex_;
  std::vector<Arrival> arrivals_;
  std::string token_, faults_;
  grpc::ClientContext* call_ = nullptr;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace driftd::test
