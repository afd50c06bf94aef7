// SPDX-License-Identifier: Apache-2.0
// Listeners, credentials, start and stop.
#include "grpc/server.hpp"

#include <grpc/support/log.h>
#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/resource_quota.h>
#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_credentials_options.h>
#include <grpcpp/server_posix.h>
#include <sys/socket.h>
#include <unistd.h>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/local/stream_protocol.hpp>

#include "base/fatal.hpp"
#include "base/log.hpp"
#include "grpc/access.hpp"
#include "grpc/callback_sink.hpp"
#include "grpc/files.hpp"
#include "grpc/library.hpp"
#include "grpc/tcp_door.hpp"

namespace driftd::rpc {
namespace {

using Local = asio::local::stream_protocol;

constexpr std::size_t kMaxConnections = 256;   // of the Unix socket
constexpr std::size_t kMaxMemory = 64u << 20;  // of all connections together, as gRPC counts it
constexpr int kMaxThreads = 16;                // of gRPC's synchronous service, which is reflection
constexpr int kMaxRequestBytes = 256 << 10;
constexpr int kMaxCallsOfConnection = 100;
constexpr int kHandshakeMs = 10'000;
constexpr int kIdleMs = 300'000;  // a connection without a call is closed
constexpr int kKeepaliveMs = 30'000, kKeepaliveTimeoutMs = 20'000;
constexpr std::chrono::seconds kStopGrace{2};

void log_line(gpr_log_func_args* line) { log::room("sinks").warn("grpc: {}", line->message); }

std::shared_ptr<::grpc::ServerCredentials> server_credentials(const Settings& settings) {
  if (settings.cert.empty()) return ::grpc::InsecureServerCredentials();
  namespace tls = ::grpc::experimental;
  const bool mutual = !settings.client_ca.empty();
  const auto files =
      mutual ? std::make_shared<tls::FileWatcherCertificateProvider>(settings.key, settings.cert, settings.client_ca,
                                                                     kFollowFilesSeconds)
             : std::make_shared<tls::FileWatcherCertificateProvider>(settings.key, settings.cert, kFollowFilesSeconds);
  tls::TlsServerCredentialsOptions options(files);
  options.watch_identity_key_cert_pairs();
  if (mutual) options.watch_root_certs();
  // With tokens, a client without a certificate may still be one of theirs; one with a wrong certificate is not.
  const auto required = settings.tokens.empty() ? GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY
                                                : GRPC_SSL_REQUEST_CLIENT_CERTIFICATE_AND_VERIFY;
  options.set_cert_request_type(mutual ? required : GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE);
  return tls::TlsServerCredentials(options);
}

void set_limits(::grpc::ServerBuilder& builder) {
  ::grpc::ResourceQuota quota("driftd");
  quota.Resize(kMaxMemory);
  quota.SetMaxThreads(kMaxThreads);
  builder.SetResourceQuota(quota);
  builder.SetMaxReceiveMessageSize(kMaxRequestBytes);
  builder.SetSyncServerOption(::grpc::ServerBuilder::MAX_POLLERS, 1);
  builder.SetSyncServerOption(::grpc::ServerBuilder::NUM_CQS, 1);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kMaxCallsOfConnection);
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, kHandshakeMs);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS, kIdleMs);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveMs);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveTimeoutMs);
}

}  // namespace

Status check_settings(const Settings& settings) {
  if (settings.socket.empty() && settings.listen.empty()) {
    return fail(Code::invalid, "the section 'grpc' names neither 'socket' nor 'listen'; expected one of them or both");
  }
  const bool plain = !settings.listen.empty() && settings.cert.empty();
  if (plain && !(settings.allow_plain_loopback && is_loopback(settings.listen))) {
    return fail(Code::invalid, "grpc.listen is " + settings.listen +
                                   " without grpc.tls; expected tls: { cert, key }, or a loopback address with "
                                   "allow_plain_loopback: true");
  }
  if (!settings.listen.empty() && settings.client_ca.empty() && settings.tokens.empty()) {
    return fail(Code::invalid, "nobody could use grpc.listen: expected grpc.tls.client_ca or grpc.tokens");
  }
  DRIFTD_CHECK(check_files("grpc.tls.", settings.cert, settings.key, settings.client_ca, "client_ca"));
  return check_files("grpc.callbacks.", settings.callback_cert, settings.callback_key, settings.callback_ca, "ca");
}

struct Server::State {
  State(Settings settings, Dependencies deps)
      : shared(std::move(settings), std::move(deps)),
        events(shared),
        registry(shared),
        credentials(shared),
        door(shared.deps.core, [this](int socket) { give(socket); }),
        acceptor(shared.deps.core),
        ended(shared.deps.core) {}

  void give(int socket) {
    ::grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters connection;
    connection.fd = socket;
    tcp->HandleNewConnection(&connection);
  }

  Shared shared;
  EventsService events;
  RegistryService registry;
  CredentialsService credentials;
  std::unique_ptr<::grpc::Server> server;
  std::unique_ptr<::grpc::experimental::ExternalConnectionAcceptor> tcp;
  TcpDoor door;
  asio::basic_socket_acceptor<Local, asio::any_io_executor> acceptor;
  asio::steady_timer ended;  ///< cancelled when the loop of the acceptor ends
  bool accepting = false;
};

namespace {

/// Writes the line about a process that may not use the Unix socket at all.
Task<void> audit_closed(Shared& shared, Result<Caller> caller) {
  core::AuditEntry line;
  line.actor = caller ? caller->name : "unknown";
  if (caller) line.caller = caller->process;
  line.subject = "connection to " + shared.settings.socket;
  std::string from = line.actor;
  Error error = caller ? Error{Code::denied, caller->name + " has no rights"} : caller.error();
  co_await audit_refusal(shared, std::move(from), std::move(line), std::move(error));
}

/// Gives one connection to gRPC, or closes it.
template <class State>
Task<void> admit(State& state, int socket) {
  auto caller = state.shared.deps.identify(socket);
  const bool full = state.shared.peers.open() >= kMaxConnections;
  if (!caller || caller->rights == Rights::none || full) {
    log::room("sinks").warn("grpc: a connection to {} is closed: {}", state.shared.settings.socket,
                            !caller ? caller.error().message
                            : full  ? "as many are open as may be"
                                    : caller->name + " has no rights");
    ::close(socket);
    if (!full) co_await audit_closed(state.shared, std::move(caller));
    co_return;
  }
  socket = state.shared.peers.renumber(socket);
  state.shared.peers.add(socket, std::move(*caller));
  ::grpc::AddInsecureChannelFromFd(state.server.get(), socket);
}

template <class State>
Task<void> accept(State& state) {
  asio::steady_timer pause(state.shared.deps.core);
  while (!state.shared.stopping) {
    auto [error, socket] = co_await state.acceptor.async_accept(asio::as_tuple(asio::use_awaitable));
    if (state.shared.stopping || error == asio::error::operation_aborted) break;
    if (!error) {
      socket.native_non_blocking(true);
      co_await admit(state, socket.release());
      continue;
    }
    log::room("sinks").warn("grpc: cannot accept a connection: {}", error.message());
    pause.expires_after(std::chrono::milliseconds(100));
    co_await pause.async_wait(asio::as_tuple(asio::use_awaitable));
  }
  state.accepting = false;
  state.ended.cancel();
}

}  // namespace

Result<std::unique_ptr<Server>> Server::open(Settings settings, Dependencies deps) {
  DRIFTD_CHECK(check_settings(settings));
  keep_library();
  gpr_set_log_function(log_line);
  gpr_set_log_verbosity(GPR_LOG_SEVERITY_ERROR);
  ::grpc::EnableDefaultHealthCheckService(true);
  ::grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  return std::unique_ptr<Server>(new Server(std::make_unique<State>(std::move(settings), std::move(deps))));
}

Server::Server(std::unique_ptr<State> state) : state_(std::move(state)) {}
Server::~Server() = default;

Task<Status> Server::load() {
  const Status loaded = co_await state_->shared.subscribers.load();
  co_return loaded;
}

Task<Status> Server::start() {
  State& state = *state_;
  const Settings& settings = state.shared.settings;
  ::grpc::ServerBuilder builder;
  set_limits(builder);
  builder.RegisterService(&state.events);
  builder.RegisterService(&state.registry);
  builder.RegisterService(&state.credentials);
  int port = 0;
  if (!settings.listen.empty()) {
    DRIFTD_CO_TRY(port, co_await state.door.bind(settings.listen));
    using Type = ::grpc::ServerBuilder::experimental_type::ExternalConnectionType;
    state.tcp = builder.experimental().AddExternalConnectionAcceptor(Type::FROM_FD, server_credentials(settings));
  }
  state.server = builder.BuildAndStart();
  if (!state.server) co_return fail(Code::internal, "grpc: the server did not start; the log says why");
  state.door.start();
  auto* health = state.server->GetHealthCheckService();
  health->SetServingStatus(std::string(v1::BackendEvents::service_full_name()), true);
  health->SetServingStatus(std::string(v1::BackendRegistry::service_full_name()), true);
  health->SetServingStatus(std::string(v1::BackendCredentials::service_full_name()), true);
  if (!settings.listen.empty()) log::room("sinks").info("grpc: listening on port {}", port);
  if (settings.socket.empty()) co_return Status{};
  DRIFTD_CO_TRY(const int socket, listen_at("grpc.socket", settings.socket, settings.socket_mode));
  state.acceptor.assign(Local(), socket);
  state.accepting = true;
  asio::co_spawn(state.shared.deps.core, accept(state), fatal);
  co_return Status{};
}

void Server::wake() {
  for (const auto& stream : state_->shared.streams) stream->wake();
}

Task<void> Server::audit_unwritten_denials(bool all) { return audit_unwritten_refusals(state_->shared, all); }

Task<void> Server::stop() {
  State& state = *state_;
  if (state.shared.stopping) co_return;
  state.shared.stopping = true;
  boost::system::error_code ignored;  // it may never have been opened
  if (state.acceptor.is_open()) ::unlink(state.shared.settings.socket.c_str());
  state.acceptor.close(ignored);
  co_await state.door.stop();
  const auto streams = state.shared.streams;  // each leaves the set as it ends
  for (const auto& stream : streams) stream->cancel(fail(Code::unavailable, "the agent stops; subscribe again"));
  if (state.server) {
    auto* server = state.server.get();
    server->GetHealthCheckService()->SetServingStatus(false);
    auto shut_down = [server] {
      server->Shutdown(std::chrono::system_clock::now() + kStopGrace);
      return true;
    };
    co_await run_on(state.shared.deps.io, std::move(shut_down));
  }
  while (state.accepting) {
    state.ended.expires_at(asio::steady_timer::time_point::max());
    co_await state.ended.async_wait(asio::as_tuple(asio::use_awaitable));
  }
}

}  // namespace driftd::rpc
