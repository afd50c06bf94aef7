// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/grpcpp.h>
#include <functional>
#include <mutex>
#include <random>
#include <stop_token>

#include "circuit_breaker.hpp"
#include "driftd/consumer/agent.hpp"
#include "driftd/v1/service.grpc.pb.h"

namespace driftd::consumer {

class AgentLink {
 public:
  explicit AgentLink(AgentAccess access);

  Result<v1::Backend> backend(const std::string& name);
  /// The caller overwrites the values.
  Result<v1::ResolveCredentialsResponse> values(const v1::ResolveCredentialsRequest& request,
                                                std::chrono::milliseconds max_time);
  /// One stream of events, until it ends or `stop`.
  Status stream(const std::vector<std::string>& backends, const std::function<void()>& changed, std::stop_token stop);

 private:
  using Call = std::function<grpc::Status(grpc::ClientContext&)>;
  /// `unavailable` if the agent is away, or said that it cannot answer now.
  Status call(const std::string& what, std::chrono::milliseconds max_time, const Call& call);
  Status prepare(grpc::ClientContext& context, std::chrono::milliseconds max_time) const;
  Status add_token(grpc::ClientContext& context) const;
  enum class Ended { answered, away, unknown };
  void note(Ended ended);

  const AgentAccess access_;
  const std::shared_ptr<grpc::Channel> channel_;
  const std::unique_ptr<v1::BackendRegistry::Stub> registry_;
  const std::unique_ptr<v1::BackendCredentials::Stub> credentials_;
  const std::unique_ptr<v1::BackendEvents::Stub> events_;
  std::mutex mutex_;
  CircuitBreaker breaker_;
  std::mt19937_64 random_{std::random_device{}()};
};

}  // namespace driftd::consumer
