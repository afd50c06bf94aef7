// SPDX-License-Identifier: Apache-2.0
#include "grpc/change_log_client.hpp"

#include <grpcpp/grpcpp.h>
#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_credentials_options.h>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>

#include "core/audit.hpp"
#include "driftd/changelog/v1/changelog.grpc.pb.h"
#include "grpc/change_log_entry.hpp"
#include "grpc/files.hpp"
#include "grpc/library.hpp"

namespace driftd::rpc {
namespace {

using Answer = core::ChangeLogReceiver::Answer;
using Verdict = Answer::Verdict;
using ::grpc::StatusCode;

constexpr int kMaxResponseBytes = 4 << 20;
constexpr int kConnectSteps = 30;
constexpr std::chrono::milliseconds kConnectStep{10};
constexpr std::size_t kMaxReason = 300;  // bytes of a receiver's text

/// One call. The library's thread writes `status`, and `done` is set on the core thread afterwards.
struct WriteCall {
  explicit WriteCall(const asio::any_io_executor& core) : done(core, asio::steady_timer::time_point::max()) {}
  ::grpc::ClientContext context;
  changelog::v1::WriteEntriesRequest request;
  changelog::v1::WriteEntriesResponse response;
  ::grpc::Status status;
  asio::steady_timer done;
};

std::shared_ptr<::grpc::ChannelCredentials> mutual_tls(const ChangeLogTarget& target) {
  namespace tls = ::grpc::experimental;
  const std::string ca = target.ca.empty() ? kSystemCa : target.ca;
  tls::TlsChannelCredentialsOptions options;
  options.set_certificate_provider(
      std::make_shared<tls::FileWatcherCertificateProvider>(target.key, target.cert, ca, kFollowFilesSeconds));
  options.watch_identity_key_cert_pairs();
  options.watch_root_certs();
  options.set_verify_server_certs(true);
  return tls::TlsCredentials(options);
}

std::shared_ptr<::grpc::Channel> make_channel(const ChangeLogTarget& target) {
  ::grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_SERVICE_CONFIG_DISABLE_RESOLUTION, 1);
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);  // the runner counts each attempt
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 300);
  arguments.SetMaxReceiveMessageSize(kMaxResponseBytes);
  arguments.SetUserAgentPrefix("driftd");
  if (!target.socket.empty()) {
    return ::grpc::CreateCustomChannel("unix:" + target.socket, ::grpc::InsecureChannelCredentials(), arguments);
  }
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 30'000);
  return ::grpc::CreateCustomChannel("dns:///" + target.address, mutual_tls(target), arguments);
}

/// Whether an answer is about the receiver, about the connection, or about what it was sent.
Verdict verdict_of(StatusCode code, bool was_connected) {
  switch (code) {
    case StatusCode::OK:
      return Verdict::answered;
    case StatusCode::UNAVAILABLE:
      return was_connected ? Verdict::lost : Verdict::busy;
    case StatusCode::INVALID_ARGUMENT:
    case StatusCode::RESOURCE_EXHAUSTED:
    case StatusCode::INTERNAL:
    case StatusCode::UNKNOWN:
    case StatusCode::OUT_OF_RANGE:
    case StatusCode::DATA_LOSS:
      return Verdict::rejected;
    default:
      return Verdict::busy;
  }
}

class ChangeLogClient final : public core::ChangeLogReceiver {
 public:
  ChangeLogClient(ChangeLogTarget target, std::string agent, std::string cluster, asio::any_io_executor core)
      : target_(std::move(target)),
        agent_(std::move(agent)),
        cluster_(std::move(cluster)),
        core_(std::move(core)) {}

  Task<Answer> write(std::vector<core::ChangeEntry> entries) override;
  std::string describe() const override {
    return target_.socket.empty() ? target_.address : "unix://" + target_.socket;
  }
  void stop() override {
    stopped_ = true;
    if (call_) call_->context.TryCancel();
  }

 private:
  /// Gives the channel a moment to connect. A channel that failed before fails each call at once, also while it is
  /// connecting again, so the receiver's return would only be noticed by the call after the next wait.
  Task<bool> connect();

  const ChangeLogTarget target_;
  const std::string agent_, cluster_;
  const asio::any_io_executor core_;
  std::shared_ptr<::grpc::Channel> channel_;
  std::unique_ptr<changelog::v1::ChangeLog::Stub> stub_;
  std::shared_ptr<WriteCall> call_;  ///< in progress
  bool stopped_ = false;
};

Task<bool> ChangeLogClient::connect() {
  asio::steady_timer timer(core_);
  boost::system::error_code ignored;
  for (int i = 0; i < kConnectSteps && !stopped_; ++i) {
    if (channel_->GetState(true) == GRPC_CHANNEL_READY) co_return true;
    timer.expires_after(kConnectStep);
    co_await timer.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
  }
  co_return false;
}

Task<Answer> ChangeLogClient::write(std::vector<core::ChangeEntry> entries) {
  if (stopped_) co_return Answer{Verdict::busy, {}, "the agent stops"};
  if (!channel_) {
    channel_ = make_channel(target_);
    stub_ = changelog::v1::ChangeLog::NewStub(channel_);
  }
  const auto call = std::make_shared<WriteCall>(core_);
  for (const auto& entry : entries) {
    auto* to = call->request.add_entries();
    *to = make_entry(entry);
    to->set_agent(agent_);
    to->set_cluster(cluster_);
  }
  const bool connected = co_await connect();
  if (stopped_) co_return Answer{Verdict::busy, {}, "the agent stops"};
  call->context.set_deadline(std::chrono::system_clock::now() + target_.timeout);
  call_ = call;
  stub_->async()->WriteEntries(&call->context, &call->request, &call->response,
                               [call, core = core_](::grpc::Status status) {
                                 asio::post(core, [call, status = std::move(status)] {
                                   call->status = status;
                                   call->done.expires_at(asio::steady_timer::time_point::min());
                                 });
                               });
  boost::system::error_code woken;
  co_await call->done.async_wait(asio::redirect_error(asio::use_awaitable, woken));
  call_.reset();
  Answer out;
  out.verdict = verdict_of(call->status.error_code(), connected);
  for (const auto& result : call->response.results()) {
    out.refusals.push_back(core::shortened(result.refusal(), kMaxReason));
  }
  if (call->status.ok()) co_return out;
  out.text = core::shortened(call->status.error_message(), kMaxReason);
  if (out.text.empty()) out.text = "gRPC status " + std::to_string(call->status.error_code());
  if (call->status.error_code() == StatusCode::DEADLINE_EXCEEDED) {
    out.text = "it did not answer within " + std::to_string(target_.timeout.count()) + " ms";
  }
  co_return out;
}

}  // namespace

Status check_change_log_target(const ChangeLogTarget& target) {
  if (!target.socket.empty()) return {};
  if (target.cert.empty() || target.key.empty()) {
    return fail(Code::invalid,
                "change_log.address needs mutual TLS; expected change_log.tls with cert and key, and ca unless the "
                "system's certificates include the receiver's");
  }
  return check_files("change_log.tls.", target.cert, target.key, target.ca, "ca");
}

std::unique_ptr<core::ChangeLogReceiver> open_change_log(ChangeLogTarget target, std::string agent, std::string cluster,
                                                         asio::any_io_executor core) {
  keep_library();
  return std::make_unique<ChangeLogClient>(std::move(target), std::move(agent), std::move(cluster), std::move(core));
}

}  // namespace driftd::rpc
