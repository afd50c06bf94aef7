// SPDX-License-Identifier: Apache-2.0
#include "grpc/callback_sink.hpp"

#include <grpcpp/grpcpp.h>
#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_credentials_options.h>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <charconv>
#include <set>

#include "core/audit.hpp"
#include "core/value/path.hpp"
#include "driftd/v1/service.grpc.pb.h"
#include "grpc/files.hpp"

namespace driftd::rpc {
namespace {

using core::Attempt;
using Outcome = Attempt::Outcome;

constexpr std::chrono::seconds kCallTimeout{20};
constexpr int kMaxInFlight = 64;
constexpr int kMaxRefusals = 3;  // then the subscriber refuses this event for good
constexpr int kMaxAnswerBytes = 4 << 10;

/// One call. The library's thread writes `status`, and `done` is set on the core thread afterwards.
struct Call {
  explicit Call(const asio::any_io_executor& core) : done(core, asio::steady_timer::time_point::max()) {}
  ::grpc::ClientContext context;
  v1::BackendEventNotification request;
  v1::BackendEventAck answer;
  ::grpc::Status status;
  asio::steady_timer done;
};

std::shared_ptr<::grpc::ChannelCredentials> credentials(const std::string& endpoint, const Settings& settings) {
  if (settings.allow_plain_loopback && is_loopback(endpoint) && settings.callback_ca.empty()) {
    return ::grpc::InsecureChannelCredentials();
  }
  namespace tls = ::grpc::experimental;
  const std::string ca = settings.callback_ca.empty() ? kSystemCa : settings.callback_ca;
  const bool own = !settings.callback_cert.empty();
  tls::TlsChannelCredentialsOptions options;
  if (own) {
    options.set_certificate_provider(std::make_shared<tls::FileWatcherCertificateProvider>(
        settings.callback_key, settings.callback_cert, ca, kFollowFilesSeconds));
    options.watch_identity_key_cert_pairs();
  } else {
    options.set_certificate_provider(std::make_shared<tls::FileWatcherCertificateProvider>(ca, kFollowFilesSeconds));
  }
  options.watch_root_certs();
  options.set_verify_server_certs(true);
  return tls::TlsCredentials(options);
}

std::shared_ptr<::grpc::Channel> make_channel(const std::string& endpoint, const Settings& settings) {
  ::grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_SERVICE_CONFIG_DISABLE_RESOLUTION, 1);
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);  // the relay's books count each attempt
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1'000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 30'000);
  arguments.SetMaxReceiveMessageSize(kMaxAnswerBytes);
  arguments.SetUserAgentPrefix("driftd");
  return ::grpc::CreateCustomChannel("dns:///" + endpoint, credentials(endpoint, settings), arguments);
}

class CallbackSink final : public core::Sink {
 public:
  CallbackSink(const core::Subscription& subscription, Settings settings, asio::any_io_executor core)
      : subscriber_(subscription.subscriber),
        endpoint_(subscription.callback_endpoint),
        types_(subscription.event_types.begin(), subscription.event_types.end()),
        settings_(std::move(settings)),
        core_(std::move(core)) {}

  core::RetryPolicy policy() const override {
    using namespace std::chrono_literals;
    return {false, {0s, 5s, 5min, 30min, 2h, 5h, 10h, 14h, 20h, 24h}, kMaxInFlight};
  }
  Task<Status> start() override {
    channel_ = make_channel(endpoint_, settings_);
    stub_ = v1::BackendEventCallback::NewStub(channel_);
    channel_->GetState(true);  // begins to connect
    co_return Status{};
  }
  Task<Attempt> send(core::StoredEvent event) override;
  Task<void> stop() override {
    for (const auto& call : calls_) call->context.TryCancel();
    stub_.reset();
    channel_.reset();
    co_return;
  }
  std::string describe() const override {
    if (connected()) return "connected to " + endpoint_ + (last_.empty() ? "" : ", " + last_);
    return last_.empty() ? "connecting to " + endpoint_ : last_;
  }

 private:
  bool connected() const { return channel_ && channel_->GetState(true) == GRPC_CHANNEL_READY; }
  Attempt attempt_of(const core::StoredEvent& event, const ::grpc::Status& status) const;

  const std::string subscriber_, endpoint_;
  const std::set<core::ChangeType> types_;  ///< empty: all
  const Settings settings_;
  const asio::any_io_executor core_;
  std::shared_ptr<::grpc::Channel> channel_;
  std::unique_ptr<v1::BackendEventCallback::Stub> stub_;
  std::set<std::shared_ptr<Call>> calls_;
  std::string last_;  ///< outcome of the last call
};

Task<Attempt> CallbackSink::send(core::StoredEvent event) {
  if (!types_.empty() && !types_.contains(event.type)) co_return Attempt{};
  if (!stub_) co_return Attempt{Outcome::retry_sink, "the sink was stopped", 0};
  const auto call = std::make_shared<Call>(core_);
  call->request.set_subscriber_id(subscriber_);
  call->request.set_replay(event.replay);
  const bool parsed = event.agent_event ? call->request.mutable_agent_event()->ParseFromString(event.payload)
                                        : call->request.mutable_event()->ParseFromString(event.payload);
  if (!parsed) co_return Attempt{Outcome::permanent, "the stored bytes are not a valid event", 0};
  call->context.set_deadline(std::chrono::system_clock::now() + kCallTimeout);
  calls_.insert(call);
  stub_->async()->Notify(&call->context, &call->request, &call->answer, [call, core = core_](::grpc::Status status) {
    asio::post(core, [call, status = std::move(status)] {
      call->status = status;
      call->done.expires_at(asio::steady_timer::time_point::min());
    });
  });
  boost::system::error_code woken;
  co_await call->done.async_wait(asio::redirect_error(asio::use_awaitable, woken));
  calls_.erase(call);
  Attempt attempt = attempt_of(event, call->status);
  last_ = attempt.detail;
  co_return attempt;
}

std::string_view name_of(::grpc::StatusCode code) {
  static constexpr std::string_view kNames[] = {
      "OK",        "CANCELLED",      "UNKNOWN",           "INVALID_ARGUMENT",   "DEADLINE_EXCEEDED",
      "NOT_FOUND", "ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION",
      "ABORTED",   "OUT_OF_RANGE",   "UNIMPLEMENTED",     "INTERNAL",           "UNAVAILABLE",
      "DATA_LOSS", "UNAUTHENTICATED"};
  const auto at = static_cast<std::size_t>(code);
  return at < std::size(kNames) ? kNames[at] : "an unknown status";
}

/// What an answer means: about this event, about the endpoint, or perhaps about either (docs/grpc.md).
Attempt CallbackSink::attempt_of(const core::StoredEvent& event, const ::grpc::Status& status) const {
  const std::string detail = std::string(name_of(status.error_code())) + " from " + endpoint_ +
                             (status.ok() ? "" : ": " + core::shortened(status.error_message(), 200));
  switch (status.error_code()) {
    case ::grpc::StatusCode::OK:
      return {Outcome::delivered, detail, 0};
    case ::grpc::StatusCode::UNAVAILABLE:
      return {connected() ? Outcome::refused : Outcome::retry_sink, detail, 0};
    case ::grpc::StatusCode::UNIMPLEMENTED:
    case ::grpc::StatusCode::UNAUTHENTICATED:
    case ::grpc::StatusCode::PERMISSION_DENIED:
    case ::grpc::StatusCode::NOT_FOUND:
    case ::grpc::StatusCode::RESOURCE_EXHAUSTED:
      return {Outcome::refused, detail, 0};
    case ::grpc::StatusCode::INVALID_ARGUMENT:
    case ::grpc::StatusCode::OUT_OF_RANGE:
    case ::grpc::StatusCode::FAILED_PRECONDITION:
      break;
    default:
      return {Outcome::retry_event, detail, 0};
  }
  if (event.refusals + 1 < kMaxRefusals) return {Outcome::retry_event, detail, 0, true};
  return {Outcome::permanent, detail, 0};
}

bool is_host_and_port(const std::string& endpoint) {
  const std::size_t colon = endpoint.rfind(':');
  if (colon == std::string::npos || colon == 0 || endpoint.size() > 256) return false;
  std::uint16_t port = 0;
  const char* end = endpoint.data() + endpoint.size();
  const auto read = std::from_chars(endpoint.data() + colon + 1, end, port);
  const std::string host = endpoint.substr(0, colon);
  const bool bracketed = host.front() == '[' && host.back() == ']';
  const auto plain = [bracketed](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '-' || c == '_' ||
           (bracketed && (c == '[' || c == ']' || c == ':'));
  };
  return read.ec == std::errc{} && read.ptr == end && port != 0 && std::all_of(host.begin(), host.end(), plain);
}

}  // namespace

Status check_endpoint(const Settings& settings, const std::string& endpoint) {
  if (!is_host_and_port(endpoint)) {
    return fail(Code::invalid, "callback_endpoint is '" + core::shortened(endpoint, 64) +
                                   "'; expected HOST:PORT of a gRPC server, without a scheme");
  }
  const auto& allow = settings.callback_allow;
  const bool allowed = std::any_of(allow.begin(), allow.end(), [&endpoint](const std::string& glob) {
    return core::Glob::of_name(glob).matches(std::string_view(endpoint));
  });
  if (allowed) return {};
  return fail(Code::denied, "callback_endpoint " + endpoint + " is not allowed: no entry of grpc.callbacks.allow (" +
                                std::to_string(allow.size()) +
                                ") matches it; add one, such as '*.apps.svc:7070', to the agent's configuration");
}

Result<std::unique_ptr<core::Sink>> open_callback(const core::Subscription& subscription, const Settings& settings,
                                                  asio::any_io_executor core) {
  DRIFTD_CHECK(
      check_files("grpc.callbacks.", settings.callback_cert, settings.callback_key, settings.callback_ca, "ca"));
  return std::make_unique<CallbackSink>(subscription, settings, std::move(core));
}

}  // namespace driftd::rpc
