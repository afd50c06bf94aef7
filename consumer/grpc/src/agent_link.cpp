// SPDX-License-Identifier: Apache-2.0
#include "agent_link.hpp"

#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_credentials_options.h>
#include <algorithm>
#include <fstream>

namespace driftd::consumer {
namespace {

using std::chrono::milliseconds;

constexpr const char* kSystemCa = "/etc/ssl/certs/ca-certificates.crt";
constexpr unsigned kFollowFilesSeconds = 5;
constexpr std::size_t kMaxToken = 4'096;
constexpr int kMaxAnswerBytes = 4 << 20;

bool is_socket(const std::string& target) { return target.starts_with("unix:"); }

std::shared_ptr<grpc::ChannelCredentials> credentials(const AgentAccess& access) {
  if (is_socket(access.target)) return grpc::InsecureChannelCredentials();
  namespace tls = grpc::experimental;
  const std::string ca = access.ca.empty() ? kSystemCa : access.ca;
  tls::TlsChannelCredentialsOptions options;
  if (access.cert.empty()) {
    options.set_certificate_provider(std::make_shared<tls::FileWatcherCertificateProvider>(ca, kFollowFilesSeconds));
  } else {
    options.set_certificate_provider(
        std::make_shared<tls::FileWatcherCertificateProvider>(access.key, access.cert, ca, kFollowFilesSeconds));
    options.watch_identity_key_cert_pairs();
  }
  options.watch_root_certs();
  options.set_verify_server_certs(true);
  return tls::TlsCredentials(options);
}

std::shared_ptr<grpc::Channel> make_channel(const AgentAccess& access) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_SERVICE_CONFIG_DISABLE_RESOLUTION, 1);
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);  // the circuit decides
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 1'000);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1'000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 30'000);
  arguments.SetMaxReceiveMessageSize(kMaxAnswerBytes);
  return grpc::CreateCustomChannel(access.target, credentials(access), arguments);
}

Code code_of(grpc::StatusCode code) {
  switch (code) {
    case grpc::StatusCode::INVALID_ARGUMENT:
    case grpc::StatusCode::UNIMPLEMENTED:
      return Code::invalid;
    case grpc::StatusCode::NOT_FOUND:
      return Code::not_found;
    case grpc::StatusCode::PERMISSION_DENIED:
    case grpc::StatusCode::UNAUTHENTICATED:
      return Code::denied;
    case grpc::StatusCode::DEADLINE_EXCEEDED:
      return Code::deadline;
    case grpc::StatusCode::UNAVAILABLE:
    case grpc::StatusCode::RESOURCE_EXHAUSTED:
    case grpc::StatusCode::FAILED_PRECONDITION:  // it answers, but cannot read the value or write its audit log
    case grpc::StatusCode::CANCELLED:
      return Code::unavailable;
    default:
      return Code::internal;
  }
}

/// Returns what is wrong with a file that must be readable; empty if nothing is.
std::string file_fault(const char* member, const std::string& path) {
  if (path.empty() || std::ifstream(path)) return {};
  return std::string("'") + member + "' of the agent's access: " + path + " cannot be read";
}

Status check(const AgentAccess& access) {
  const bool socket = is_socket(access.target);
  if (access.target.empty() || (!socket && access.target.find(':') == access.target.npos)) {
    return fail(Code::invalid,
                "'target' of the agent's access is '" + access.target + "'; expected unix:/PATH or host:port");
  }
  if (access.cert.empty() != access.key.empty()) {
    return fail(Code::invalid, "the agent's access has only one of 'cert' and 'key'; expected both or none");
  }
  if (access.timeout.count() <= 0 || access.breaker_failures < 1 || access.breaker_first.count() <= 0 ||
      access.breaker_max < access.breaker_first) {
    return fail(Code::invalid,
                "'timeout', 'breaker_failures', 'breaker_first' and 'breaker_max' of the agent's access "
                "must be above 0, and 'breaker_max' not below 'breaker_first'");
  }
  for (const auto& [member, path] : {std::pair("ca", access.ca), std::pair("cert", access.cert),
                                     std::pair("key", access.key), std::pair("token_file", access.token_file)}) {
    const std::string fault = file_fault(member, path);
    if (!fault.empty()) return fail(Code::invalid, fault);
  }
  return {};
}

/// Reads the token without its newline. A token is a header, so it has printable characters only.
Result<std::string> read_token(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string out(kMaxToken + 1, '\0');
  file.read(out.data(), static_cast<std::streamsize>(out.size()));
  out.resize(static_cast<std::size_t>(std::max<std::streamsize>(file.gcount(), 0)));
  while (out.ends_with('\n') || out.ends_with('\r')) out.pop_back();
  const bool printable = std::all_of(out.begin(), out.end(), [](char c) { return c > 0x20 && c < 0x7f; });
  if (!out.empty() && out.size() <= kMaxToken && printable) return out;
  return fail(Code::unavailable, "the token for driftd's agent in " + path + " cannot be read; expected 1 to " +
                                     std::to_string(kMaxToken) + " printable bytes");
}

}  // namespace

Result<std::shared_ptr<AgentLink>> link_agent(AgentAccess access) {
  const Status good = check(access);
  if (!good) return tl::unexpected<Error>(good.error());
  return std::make_shared<AgentLink>(std::move(access));
}

AgentLink::AgentLink(AgentAccess access)
    : access_(std::move(access)),
      channel_(make_channel(access_)),
      registry_(v1::BackendRegistry::NewStub(channel_)),
      credentials_(v1::BackendCredentials::NewStub(channel_)),
      events_(v1::BackendEvents::NewStub(channel_)),
      breaker_(access_.breaker_failures, Backoff(access_.breaker_first, access_.breaker_max)) {}

Status AgentLink::prepare(grpc::ClientContext& context, milliseconds max_time) const {
  context.set_deadline(std::chrono::system_clock::now() + std::min(max_time, access_.timeout));
  return add_token(context);
}

Status AgentLink::add_token(grpc::ClientContext& context) const {
  if (access_.token_file.empty()) return {};
  auto token = read_token(access_.token_file);
  if (!token) return tl::unexpected<Error>(token.error());
  context.AddMetadata("authorization", "Bearer " + *token);
  return {};
}

void AgentLink::note(Ended ended) {
  const std::lock_guard lock(mutex_);
  if (ended == Ended::answered) breaker_.succeeded();
  if (ended == Ended::away) breaker_.failed(CircuitBreaker::Time::clock::now(), random_);
  if (ended == Ended::unknown) breaker_.abandoned();
}

Status AgentLink::call(const std::string& what, milliseconds max_time, const Call& call) {
  const std::string failed = what + ": driftd's agent at " + access_.target + ": ";
  {
    const std::lock_guard lock(mutex_);
    if (!breaker_.allow(CircuitBreaker::Time::clock::now())) {
      return fail(Code::unavailable, failed + "it did not answer before, and is asked again soon");
    }
  }
  grpc::ClientContext context;
  const Status ready = prepare(context, max_time);
  const grpc::Status status =
      ready ? call(context) : grpc::Status(grpc::StatusCode::UNAVAILABLE, ready.error().message);
  const auto code = status.error_code();
  const bool late = code == grpc::StatusCode::DEADLINE_EXCEEDED;
  const bool away = ready && (code == grpc::StatusCode::UNAVAILABLE || (late && max_time >= access_.timeout));
  note(away ? Ended::away : !ready || late ? Ended::unknown : Ended::answered);
  if (status.ok()) return {};
  return fail(code_of(code), failed + status.error_message());
}

Result<v1::Backend> AgentLink::backend(const std::string& name) {
  v1::GetBackendRequest request;
  request.set_name(name);
  v1::Backend out;
  const Status done = call("backend " + name, access_.timeout, [&](grpc::ClientContext& context) {
    return registry_->GetBackend(&context, request, &out);
  });
  if (!done) return tl::unexpected<Error>(done.error());
  return out;
}

Result<v1::ResolveCredentialsResponse> AgentLink::values(const v1::ResolveCredentialsRequest& request,
                                                         milliseconds max_time) {
  v1::ResolveCredentialsResponse out;
  const Status done = call("credentials of backend " + request.backend(), max_time, [&](grpc::ClientContext& context) {
    return credentials_->ResolveCredentials(&context, request, &out);
  });
  if (!done) return tl::unexpected<Error>(done.error());
  return out;
}

Status AgentLink::stream(const std::vector<std::string>& backends, const std::function<void()>& changed,
                         std::stop_token stop) {
  grpc::ClientContext context;
  Status ready = add_token(context);
  if (!ready) return ready;
  v1::SubscribeRequest request;
  for (const auto& name : backends) request.add_backend_names(name);
  request.set_start(v1::SubscribeRequest::START_NOW);
  const std::stop_callback cancel(stop, [&context] { context.TryCancel(); });
  const auto reader = events_->Subscribe(&context, request);
  v1::SubscribeResponse message;
  while (reader->Read(&message)) {
    // The position is the first message: what happened before it was not seen, so it counts as a change.
    if (message.has_position()) note(Ended::answered);
    if (!message.has_heartbeat()) changed();
  }
  const grpc::Status status = reader->Finish();
  if (stop.stop_requested()) return {};
  return fail(status.ok() ? Code::unavailable : code_of(status.error_code()),
              "events of driftd's agent at " + access_.target + ": " +
                  (status.ok() ? "the stream ended" : status.error_message()));
}

Status follow_agent(AgentLink& link, const std::vector<std::string>& backends, const std::function<void()>& changed,
                    std::stop_token stop) {
  return link.stream(backends, changed, std::move(stop));
}

}  // namespace driftd::consumer
