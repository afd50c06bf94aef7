// SPDX-License-Identifier: Apache-2.0
// The services, as gRPC calls them. Included by server.cpp and service.cpp only: it pulls in all of gRPC.
#pragma once

#include <grpcpp/grpcpp.h>
#include <set>

#include "core/denials.hpp"
#include "driftd/v1/service.grpc.pb.h"
#include "grpc/server.hpp"
#include "grpc/stream.hpp"

namespace driftd::rpc {

/// What the handlers of both services share. Core thread, but for what is const.
struct Shared {
  Shared(Settings given, Dependencies dependencies);

  const Settings settings;
  Dependencies deps;
  Subscribers subscribers;
  StreamContext streaming;
  Peers peers;
  core::Denials denials;
  std::set<std::shared_ptr<Stream>> streams;
  bool stopping = false;
};

::grpc::Status to_grpc(const Status& status);

/// Writes a backend of the registry as an answer shows it.
void fill(core::RegisteredBackend from, v1::Backend* to);

class EventsService final
    : public v1::BackendEvents::WithRawCallbackMethod_Subscribe<v1::BackendEvents::CallbackService> {
 public:
  using Context = ::grpc::CallbackServerContext;
  using Unary = ::grpc::ServerUnaryReactor;
  explicit EventsService(Shared& shared) : shared_(shared) {}

  ::grpc::ServerWriteReactor<::grpc::ByteBuffer>* Subscribe(Context* context,
                                                            const ::grpc::ByteBuffer* request) override;
  Unary* CreateSubscription(Context* context, const v1::CreateSubscriptionRequest* request,
                            v1::SubscriberStatus* answer) override;
  Unary* UpdateSubscription(Context* context, const v1::UpdateSubscriptionRequest* request,
                            v1::SubscriberStatus* answer) override;
  Unary* GetSubscription(Context* context, const v1::GetSubscriptionRequest* request,
                         v1::SubscriberStatus* answer) override;
  Unary* ListSubscriptions(Context* context, const v1::ListSubscriptionsRequest* request,
                           v1::ListSubscriptionsResponse* answer) override;
  Unary* DeleteSubscription(Context* context, const v1::DeleteSubscriptionRequest* request,
                            v1::DeleteSubscriptionResponse* answer) override;

 private:
  Shared& shared_;
};

class RegistryService final : public v1::BackendRegistry::CallbackService {
 public:
  explicit RegistryService(Shared& shared) : shared_(shared) {}
  ::grpc::ServerUnaryReactor* GetBackend(::grpc::CallbackServerContext* context, const v1::GetBackendRequest* request,
                                         v1::Backend* answer) override;
  ::grpc::ServerUnaryReactor* ListBackends(::grpc::CallbackServerContext* context,
                                           const v1::ListBackendsRequest* request,
                                           v1::ListBackendsResponse* answer) override;
  ::grpc::ServerUnaryReactor* RegisterBackend(::grpc::CallbackServerContext* context,
                                              const v1::RegisterBackendRequest* request, v1::Backend* answer) override;
  ::grpc::ServerUnaryReactor* UpdateBackend(::grpc::CallbackServerContext* context,
                                            const v1::UpdateBackendRequest* request, v1::Backend* answer) override;
  ::grpc::ServerUnaryReactor* DeleteBackend(::grpc::CallbackServerContext* context,
                                            const v1::DeleteBackendRequest* request,
                                            v1::DeleteBackendResponse* answer) override;

 private:
  Shared& shared_;
};

class CredentialsService final
    : public v1::BackendCredentials::WithRawCallbackMethod_ResolveCredentials<v1::BackendCredentials::CallbackService> {
 public:
  explicit CredentialsService(Shared& shared) : shared_(shared) {}
  ::grpc::ServerUnaryReactor* ResolveCredentials(::grpc::CallbackServerContext* context,
                                                 const ::grpc::ByteBuffer* request,
                                                 ::grpc::ByteBuffer* answer) override;

 private:
  Shared& shared_;
};

}  // namespace driftd::rpc
