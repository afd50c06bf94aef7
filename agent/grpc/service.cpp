// SPDX-License-Identifier: Apache-2.0
#include "grpc/service.hpp"

#include <boost/asio/post.hpp>

#include "base/escape.hpp"
#include "base/fatal.hpp"
#include "base/log.hpp"
#include "core/registration_names.hpp"
#include "grpc/access.hpp"
#include "grpc/callback_sink.hpp"

namespace driftd::rpc {
namespace {

using ::grpc::ByteBuffer;
using ::grpc::CallbackServerContext;
using ::grpc::ServerUnaryReactor;

constexpr int kDefaultPage = 100, kMaxPage = 1'000;
constexpr std::size_t kMaxPageBytes = 2u << 20;  // clients take 4 MiB by default

::grpc::StatusCode to_grpc(Code code) {
  switch (code) {
    case Code::ok:
      return ::grpc::StatusCode::OK;
    case Code::invalid:
      return ::grpc::StatusCode::INVALID_ARGUMENT;
    case Code::unauthenticated:
      return ::grpc::StatusCode::UNAUTHENTICATED;
    case Code::denied:
      return ::grpc::StatusCode::PERMISSION_DENIED;
    case Code::not_found:
      return ::grpc::StatusCode::NOT_FOUND;
    case Code::conflict:
      return ::grpc::StatusCode::ALREADY_EXISTS;
    case Code::cursor_expired:
      return ::grpc::StatusCode::OUT_OF_RANGE;
    case Code::throttled:
    case Code::budget:
      return ::grpc::StatusCode::RESOURCE_EXHAUSTED;
    case Code::unsupported:
      return ::grpc::StatusCode::UNIMPLEMENTED;
    case Code::unavailable:
      return ::grpc::StatusCode::UNAVAILABLE;
    case Code::cancelled:
      return ::grpc::StatusCode::CANCELLED;
    case Code::deadline:
      return ::grpc::StatusCode::DEADLINE_EXCEEDED;
    case Code::corrupt:
    case Code::internal:
      break;
  }
  return ::grpc::StatusCode::INTERNAL;
}

/// One unary call on its way over the core thread. gRPC keeps what it points to until `reactor` finished.
template <class Request, class Answer>
struct UnaryCall {
  Shared& shared;
  CallbackServerContext* context;
  const Request* request;
  Answer* answer;
  ServerUnaryReactor* reactor;
};
/// What a call needs, and how the audit log names it.
struct Permit {
  Rights rights;
  const char* asked;
};
template <class Request, class Answer>
using Handler = Task<Status> (*)(UnaryCall<Request, Answer>, Caller);

template <class Request, class Answer>
Task<void> serve(UnaryCall<Request, Answer> call, Permit permit, Handler<Request, Answer> handler) {
  std::string asked = permit.asked;
  auto caller = co_await authorise(call.shared, *call.context, permit.rights, std::move(asked));
  Status status;
  if (caller) {
    status = co_await handler(call, std::move(*caller));
  } else {
    status = fail(caller.error());
  }
  call.reactor->Finish(rpc::to_grpc(status));
}

template <class Request, class Answer>
ServerUnaryReactor* spawn(Shared& shared, CallbackServerContext* context, const Request* request, Answer* answer,
                          Permit permit, Handler<Request, Answer> handler) {
  UnaryCall<Request, Answer> call{shared, context, request, answer, context->DefaultReactor()};
  asio::co_spawn(shared.deps.core, serve(call, permit, handler), fatal);
  return call.reactor;
}

void fill(const core::Subscription& from, v1::BackendEventSubscription* to) {
  to->set_subscriber_id(from.subscriber);
  for (const auto& name : from.backend_names) to->add_backend_names(name);
  for (const auto type : from.event_types) to->add_event_types(static_cast<v1::BackendChangeType>(type));
  to->set_callback_endpoint(from.callback_endpoint);
}

void fill(const SubscriberState& from, v1::SubscriberStatus* to) {
  fill(from.subscription, to->mutable_subscription());
  to->set_status(from.status);
  to->set_detail(valid_utf8(from.detail));
  to->set_streams(from.streams);
  to->set_sink(from.sink);
  to->set_delivered(from.delivered);
  to->set_waiting(from.waiting);
  to->set_dead_letters(from.dead);
}

core::Subscription subscription_of(const v1::BackendEventSubscription& from) {
  core::Subscription out;
  out.subscriber = from.subscriber_id();
  out.backend_names.assign(from.backend_names().begin(), from.backend_names().end());
  for (const int type : from.event_types()) out.event_types.push_back(static_cast<core::ChangeType>(type));
  out.callback_endpoint = from.callback_endpoint();
  return out;
}

core::AuditEntry line_about(const Caller& caller, std::string verb, const core::Subscription& about) {
  core::AuditEntry out = line_of(caller, std::move(verb), about.subscriber);
  if (!about.callback_endpoint.empty())
    out.reason = "callback " + escaped(core::shortened(about.callback_endpoint, 256));
  return out;
}

/// A change is stored with its line; one that failed has a line that says why.
Task<Status> answer_with(Shared& shared, v1::SubscriberStatus* answer, core::AuditEntry line,
                         Result<SubscriberState> state) {
  if (!state) {
    Error error = state.error();
    co_await audit_failure(shared, std::move(line), std::move(error));
    co_return fail(state.error());
  }
  fill(*state, answer);
  co_return Status{};
}

Task<Status> create(UnaryCall<v1::CreateSubscriptionRequest, v1::SubscriberStatus> call, Caller caller) {
  core::Subscription next = subscription_of(call.request->subscription());
  core::AuditEntry line = line_about(caller, "subscribe", next);
  auto state = co_await call.shared.subscribers.create(std::move(next), line);
  const Status done = co_await answer_with(call.shared, call.answer, std::move(line), std::move(state));
  co_return done;
}

Task<Status> update(UnaryCall<v1::UpdateSubscriptionRequest, v1::SubscriberStatus> call, Caller caller) {
  core::Subscription next = subscription_of(call.request->subscription());
  core::AuditEntry line = line_about(caller, "change subscription", next);
  auto state = co_await call.shared.subscribers.update(std::move(next), line);
  const Status done = co_await answer_with(call.shared, call.answer, std::move(line), std::move(state));
  co_return done;
}

Task<Status> remove(UnaryCall<v1::DeleteSubscriptionRequest, v1::DeleteSubscriptionResponse> call, Caller caller) {
  core::Subscription gone;
  gone.subscriber = call.request->subscriber_id();
  core::AuditEntry line = line_about(caller, "unsubscribe", gone);
  const auto existed = co_await call.shared.subscribers.remove(gone.subscriber, line);
  if (!existed) {
    Error error = existed.error();
    co_await audit_failure(call.shared, std::move(line), std::move(error));
    co_return fail(existed.error());
  }
  call.answer->set_existed(*existed);
  co_return Status{};
}

Task<Status> get(UnaryCall<v1::GetSubscriptionRequest, v1::SubscriberStatus> call, Caller) {
  DRIFTD_CO_TRY(const auto state, call.shared.subscribers.get(call.request->subscriber_id()));
  fill(state, call.answer);
  co_return Status{};
}

Task<Status> list(UnaryCall<v1::ListSubscriptionsRequest, v1::ListSubscriptionsResponse> call, Caller) {
  for (const auto& state : call.shared.subscribers.list()) fill(state, call.answer->add_subscribers());
  co_return Status{};
}

Task<Status> get_backend(UnaryCall<v1::GetBackendRequest, v1::Backend> call, Caller) {
  const std::string& name = call.request->name();
  for (auto& backend : call.shared.deps.backends()) {
    if (backend.snapshot.name != name) continue;
    rpc::fill(std::move(backend), call.answer);
    co_return Status{};
  }
  co_return fail(Code::not_found, "there is no backend '" + core::shortened(name, 64) +
                                      "'; ListBackends or `driftd backends` names those that are registered");
}

/// A page begins after the name that is its token.
Task<Status> list_backends(UnaryCall<v1::ListBackendsRequest, v1::ListBackendsResponse> call, Caller) {
  const int asked = call.request->page_size();
  if (asked < 0 || asked > kMaxPage) {
    co_return fail(Code::invalid, "page_size is " + std::to_string(asked) + "; expected 0 to 1000");
  }
  const int max = asked == 0 ? kDefaultPage : asked;
  std::size_t bytes = 0;
  for (auto& backend : call.shared.deps.backends()) {
    if (backend.snapshot.name <= call.request->page_token()) continue;
    if (call.answer->backends_size() >= max || bytes >= kMaxPageBytes) {
      call.answer->set_next_page_token(call.answer->backends().rbegin()->name());
      break;
    }
    v1::Backend* out = call.answer->add_backends();
    rpc::fill(std::move(backend), out);
    bytes += out->ByteSizeLong();
  }
  co_return Status{};
}

/// One Subscribe call. Its methods On… run on threads of gRPC and post to the core thread, which does all else and
/// deletes it.
class Subscribing final : public ::grpc::ServerWriteReactor<ByteBuffer>, public FrameWriter {
 public:
  Subscribing(Shared& shared, CallbackServerContext* context) : shared_(shared), context_(context) {}

  void OnWriteDone(bool ok) override {
    asio::post(shared_.deps.core, [this, ok] {
      if (stream_) stream_->written(ok);
    });
  }
  void OnCancel() override {
    asio::post(shared_.deps.core, [this] {
      cancelled_ = true;
      if (stream_) stream_->cancel(fail(Code::cancelled, "the subscriber has gone"));
    });
  }
  void OnDone() override {
    asio::post(shared_.deps.core, [this] { delete this; });
  }

  void write(std::string frame) override {
    const ::grpc::Slice slice(frame.data(), frame.size());
    buffer_ = ByteBuffer(&slice, 1);
    StartWrite(&buffer_);
  }
  void abort() override { context_->TryCancel(); }
  void finish(Status status) override { Finish(rpc::to_grpc(status)); }

  /// Serves the call to its end. `this` may be gone afterwards.
  Task<void> serve(std::shared_ptr<v1::SubscribeRequest> request);

 private:
  Result<std::shared_ptr<Stream>> open(const v1::SubscribeRequest& request);

  Shared& shared_;
  CallbackServerContext* context_;
  ByteBuffer buffer_;  ///< the message on its way
  std::shared_ptr<Stream> stream_;
  bool cancelled_ = false;
};

Result<Start> start_of(const v1::SubscribeRequest& request) {
  const bool token = !request.resume_token().empty();
  if (token && request.start() != v1::SubscribeRequest::START_UNSPECIFIED) {
    return fail(Code::invalid, "the request has both 'start' and 'resume_token'; expected one of them");
  }
  if (token) {
    DRIFTD_TRY(const ResumeToken parsed, parse_token(request.resume_token()));
    return Start{Start::At::token, parsed};
  }
  switch (request.start()) {
    case v1::SubscribeRequest::START_UNSPECIFIED:
    case v1::SubscribeRequest::START_NOW:
      return Start{Start::At::now};
    case v1::SubscribeRequest::START_OLDEST:
      return Start{Start::At::oldest};
    default:
      return fail(Code::invalid, "'start' is " + std::to_string(request.start()) +
                                     "; expected START_NOW, START_OLDEST, or a resume_token without it");
  }
}

Result<std::shared_ptr<Stream>> Subscribing::open(const v1::SubscribeRequest& request) {
  if (!request.subscriber_id().empty()) {
    const std::string why = core::invalid_name_reason(request.subscriber_id());
    if (!why.empty()) return fail(Code::invalid, "subscriber_id is not valid: " + why);
  }
  FilterSpec spec;
  spec.backend_names.assign(request.backend_names().begin(), request.backend_names().end());
  spec.backend_types.assign(request.backend_types().begin(), request.backend_types().end());
  spec.event_types.assign(request.event_types().begin(), request.event_types().end());
  spec.change_classes.assign(request.change_classes().begin(), request.change_classes().end());
  spec.agent_events = request.agent_events();
  DRIFTD_TRY(Filter filter, Filter::make(spec));
  DRIFTD_TRY(const Start start, start_of(request));
  if (shared_.streams.size() >= static_cast<std::size_t>(shared_.settings.max_streams)) {
    return fail(Code::budget, std::to_string(shared_.streams.size()) +
                                  " streams are open, as many as grpc.max_streams allows; close one or raise it");
  }
  return std::make_shared<Stream>(shared_.streaming, request.subscriber_id(), std::move(filter), start, *this);
}

Task<void> Subscribing::serve(std::shared_ptr<v1::SubscribeRequest> request) {
  std::string asked = "Subscribe";
  const auto caller = co_await authorise(shared_, *context_, Rights::read, std::move(asked));
  Result<std::shared_ptr<Stream>> opened = fail(Code::invalid, "the request is not a SubscribeRequest");
  if (!caller)
    opened = fail(caller.error());
  else if (request)
    opened = open(*request);
  if (!opened || cancelled_) {
    finish(opened ? Status(fail(Code::cancelled, "the subscriber has gone")) : Status(fail(opened.error())));
    co_return;
  }
  Shared& shared = shared_;
  const std::shared_ptr<Stream> stream = std::move(*opened);
  stream_ = stream;
  shared.streams.insert(stream);
  if (!stream->subscriber().empty()) shared.subscribers.stream_opened(stream->subscriber());
  co_await stream->run();
  shared.streams.erase(stream);
  if (!stream->subscriber().empty()) shared.subscribers.stream_closed(stream->subscriber());
}

}  // namespace

Shared::Shared(Settings given, Dependencies dependencies)
    : settings(std::move(given)),
      deps(std::move(dependencies)),
      subscribers(
          deps.core, deps.subscriptions, deps.sinks,
          [this](const core::Subscription& one) { return open_callback(one, settings, deps.core); },
          [this](const std::string& endpoint) { return check_endpoint(settings, endpoint); }),
      streaming{deps.core, deps.io, deps.reader, settings.heartbeat, {AsyncMutex(deps.core), AsyncMutex(deps.core)}} {}

::grpc::Status to_grpc(const Status& status) {
  if (status) return ::grpc::Status::OK;
  return {to_grpc(status.error().code), valid_utf8(status.error().message)};
}

::grpc::ServerWriteReactor<ByteBuffer>* EventsService::Subscribe(Context* context, const ByteBuffer* request) {
  auto* call = new Subscribing(shared_, context);  // deletes itself after OnDone
  auto parsed = std::make_shared<v1::SubscribeRequest>();
  ByteBuffer bytes = *request;
  if (!::grpc::SerializationTraits<v1::SubscribeRequest>::Deserialize(&bytes, parsed.get()).ok()) parsed.reset();
  asio::co_spawn(shared_.deps.core, call->serve(std::move(parsed)), fatal);
  return call;
}

ServerUnaryReactor* EventsService::CreateSubscription(Context* context, const v1::CreateSubscriptionRequest* request,
                                                      v1::SubscriberStatus* answer) {
  return spawn(shared_, context, request, answer, {Rights::decide, "CreateSubscription"}, create);
}
ServerUnaryReactor* EventsService::UpdateSubscription(Context* context, const v1::UpdateSubscriptionRequest* request,
                                                      v1::SubscriberStatus* answer) {
  return spawn(shared_, context, request, answer, {Rights::decide, "UpdateSubscription"}, update);
}
ServerUnaryReactor* EventsService::DeleteSubscription(Context* context, const v1::DeleteSubscriptionRequest* request,
                                                      v1::DeleteSubscriptionResponse* answer) {
  return spawn(shared_, context, request, answer, {Rights::decide, "DeleteSubscription"}, remove);
}
ServerUnaryReactor* EventsService::GetSubscription(Context* context, const v1::GetSubscriptionRequest* request,
                                                   v1::SubscriberStatus* answer) {
  return spawn(shared_, context, request, answer, {Rights::read, "GetSubscription"}, get);
}
ServerUnaryReactor* EventsService::ListSubscriptions(Context* context, const v1::ListSubscriptionsRequest* request,
                                                     v1::ListSubscriptionsResponse* answer) {
  return spawn(shared_, context, request, answer, {Rights::read, "ListSubscriptions"}, list);
}
ServerUnaryReactor* RegistryService::GetBackend(::grpc::CallbackServerContext* context,
                                                const v1::GetBackendRequest* request, v1::Backend* answer) {
  return spawn(shared_, context, request, answer, {Rights::read, "GetBackend"}, get_backend);
}
ServerUnaryReactor* RegistryService::ListBackends(::grpc::CallbackServerContext* context,
                                                  const v1::ListBackendsRequest* request,
                                                  v1::ListBackendsResponse* answer) {
  return spawn(shared_, context, request, answer, {Rights::read, "ListBackends"}, list_backends);
}

}  // namespace driftd::rpc
