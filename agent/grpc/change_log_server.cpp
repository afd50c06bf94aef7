// SPDX-License-Identifier: Apache-2.0
#include "grpc/change_log_server.hpp"

#include <grpcpp/grpcpp.h>
#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_credentials_options.h>
#include <grpcpp/server_posix.h>
#include <unistd.h>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/steady_timer.hpp>
#include <mutex>

#include "base/fatal.hpp"
#include "base/log.hpp"
#include "driftd/changelog/v1/changelog.grpc.pb.h"
#include "grpc/change_log_line.hpp"
#include "grpc/files.hpp"
#include "grpc/library.hpp"
#include "grpc/peers.hpp"

namespace driftd::rpc {
namespace {

using ::grpc::StatusCode;
using Local = asio::local::stream_protocol;

constexpr int kMaxRequestBytes = 64 << 20;  // an entry that is refused must be read first
constexpr int kMaxEntries = 10'000;
constexpr unsigned kSocketMode = 0660;
constexpr std::chrono::seconds kStopGrace{2};
constexpr const char* kListen = "--listen";

class ChangeLogService final : public changelog::v1::ChangeLog::Service {
 public:
  ChangeLogService(const ChangeLogServerSettings& settings, ChangeLogOutput& output)
      : settings_(settings),
        output_(output) {}

 private:
  ::grpc::Status WriteEntries(::grpc::ServerContext* context, const changelog::v1::WriteEntriesRequest* request,
                              changelog::v1::WriteEntriesResponse* response) override {
    if (request->entries_size() > kMaxEntries) {
      return {StatusCode::INVALID_ARGUMENT, "a request may have 10000 entries, this one has " +
                                                std::to_string(request->entries_size()) + "; send fewer at a time"};
    }
    std::vector<std::string> lines;
    for (const auto& entry : request->entries()) {
      auto* result = response->add_results();
      result->set_sequence(entry.sequence());
      auto line = render(entry);
      if (line) {
        lines.push_back(std::move(*line));
        continue;
      }
      log::room("sidecar").error("entry {} (operation {}) is refused: {}", entry.sequence(), entry.operation_id(),
                                 line.error().message);
      result->set_refusal(line.error().message);
    }
    return write(*context, lines);
  }

  Result<std::string> render(const changelog::v1::ChangeLogEntry& entry) const {
    const std::size_t size = entry.ByteSizeLong();
    if (size <= settings_.max_entry_bytes) return render_line(entry);
    return fail(Code::invalid, "the entry has " + std::to_string(size) + " bytes, this receiver takes " +
                                   std::to_string(settings_.max_entry_bytes) +
                                   " at most; raise --max-entry-bytes of the sidecar, or send the entry without the "
                                   "states of the resource");
  }

  ::grpc::Status write(const ::grpc::ServerContext& context, const std::vector<std::string>& lines) {
    const std::lock_guard<std::mutex> one_at_a_time(mutex_);
    // The caller has given up while this call waited for its turn, and will send them again.
    if (context.IsCancelled()) return {StatusCode::CANCELLED, "the caller has ended the call"};
    const Status done = output_.write(lines);
    if (done) {
      if (std::exchange(failing_, false)) log::room("sidecar").info("entries can be written again");
      return ::grpc::Status::OK;
    }
    if (!std::exchange(failing_, true)) {
      log::room("sidecar").error("entries cannot be written, agents keep them and try again: {}", done.error().message);
    }
    return {StatusCode::FAILED_PRECONDITION, done.error().message};
  }

  const ChangeLogServerSettings& settings_;
  ChangeLogOutput& output_;
  std::mutex mutex_;      ///< guards the members below, and the output
  bool failing_ = false;  ///< the last write failed
};

std::shared_ptr<::grpc::ServerCredentials> mutual_tls(const ChangeLogServerSettings& settings) {
  namespace tls = ::grpc::experimental;
  tls::TlsServerCredentialsOptions options(std::make_shared<tls::FileWatcherCertificateProvider>(
      settings.key, settings.cert, settings.client_ca, kFollowFilesSeconds));
  options.watch_identity_key_cert_pairs();
  options.watch_root_certs();
  options.set_cert_request_type(GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  return tls::TlsServerCredentials(options);
}

void log_line(gpr_log_func_args* line) { log::room("sidecar").warn("grpc: {}", line->message); }

}  // namespace

Status check_change_log_server(const ChangeLogServerSettings& settings) {
  if (!settings.socket.empty()) return {};
  const bool whole = !settings.cert.empty() && !settings.key.empty() && !settings.client_ca.empty();
  if (!whole) {
    return fail(Code::invalid, "--listen " + settings.address +
                                   " is reached over the network, so it needs mutual TLS: expected --tls-cert, "
                                   "--tls-key and --tls-client-ca; or listen at unix:///PATH");
  }
  return check_files("--tls-", settings.cert, settings.key, settings.client_ca, "client-ca");
}

struct ChangeLogServer::State {
  State(ChangeLogServerSettings given, ChangeLogOutput& output, asio::any_io_executor executor)
      : settings(std::move(given)),
        service(settings, output),
        core(std::move(executor)),
        acceptor(core) {}

  static Task<void> accept(std::shared_ptr<State> self) {
    asio::steady_timer pause(self->core);
    while (!self->stopped) {
      auto [error, socket] = co_await self->acceptor.async_accept(asio::as_tuple(asio::use_awaitable));
      if (self->stopped || error == asio::error::operation_aborted) co_return;
      if (!error) {
        socket.native_non_blocking(true);
        ::grpc::AddInsecureChannelFromFd(self->server.get(), socket.release());
        continue;
      }
      log::room("sidecar").warn("cannot accept a connection: {}", error.message());
      pause.expires_after(std::chrono::milliseconds(100));
      co_await pause.async_wait(asio::as_tuple(asio::use_awaitable));
    }
  }

  const ChangeLogServerSettings settings;
  ChangeLogService service;
  const asio::any_io_executor core;
  asio::basic_socket_acceptor<Local, asio::any_io_executor> acceptor;
  std::unique_ptr<::grpc::Server> server;
  int port = 0;
  bool stopped = false;
};

Result<std::unique_ptr<ChangeLogServer>> ChangeLogServer::open(ChangeLogServerSettings settings,
                                                               ChangeLogOutput& output, asio::any_io_executor core) {
  DRIFTD_CHECK(check_change_log_server(settings));
  keep_library();
  gpr_set_log_function(log_line);
  gpr_set_log_verbosity(GPR_LOG_SEVERITY_ERROR);
  return std::unique_ptr<ChangeLogServer>(
      new ChangeLogServer(std::make_shared<State>(std::move(settings), output, std::move(core))));
}

ChangeLogServer::ChangeLogServer(std::shared_ptr<State> state) : state_(std::move(state)) {}
ChangeLogServer::~ChangeLogServer() { stop(); }

Status ChangeLogServer::start() {
  State& state = *state_;
  int listening = -1;
  if (!state.settings.socket.empty()) {
    DRIFTD_TRY(listening, listen_at(kListen, state.settings.socket, kSocketMode));
  }
  ::grpc::ServerBuilder builder;
  ::grpc::ResourceQuota quota("sidecar");
  quota.Resize(4ul * kMaxRequestBytes);
  quota.SetMaxThreads(8);
  builder.SetResourceQuota(quota);
  builder.SetMaxReceiveMessageSize(kMaxRequestBytes);
  builder.SetSyncServerOption(::grpc::ServerBuilder::MAX_POLLERS, 2);
  builder.SetSyncServerOption(::grpc::ServerBuilder::NUM_CQS, 1);
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);  // a second sidecar would get some of the entries
  builder.RegisterService(&state.service);
  if (listening < 0) builder.AddListeningPort(state.settings.address, mutual_tls(state.settings), &state.port);
  state.server = builder.BuildAndStart();
  const bool listens = listening >= 0 || state.port > 0;
  if (!state.server || !listens) {
    if (listening >= 0) ::close(listening);
    return fail(Code::unavailable,
                std::string(kListen) + ": cannot listen on " + state.settings.address + "; the lines before say why");
  }
  if (listening < 0) return {};
  state.acceptor.assign(Local(), listening);
  asio::co_spawn(state.core, State::accept(state_), fatal);
  return {};
}

void ChangeLogServer::stop() {
  State& state = *state_;
  if (std::exchange(state.stopped, true)) return;
  if (state.acceptor.is_open()) ::unlink(state.settings.socket.c_str());
  boost::system::error_code ignored;  // it may never have been opened
  state.acceptor.close(ignored);
  if (state.server) state.server->Shutdown(std::chrono::system_clock::now() + kStopGrace);
}

int ChangeLogServer::port() const { return state_->port; }

}  // namespace driftd::rpc
