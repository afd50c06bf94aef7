// SPDX-License-Identifier: Apache-2.0
#include "operator/agent_registry.hpp"

#include <grpcpp/grpcpp.h>
#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_credentials_options.h>
#include <condition_variable>
#include <fstream>
#include <iterator>
#include <set>
#include <stdexcept>

#include "base/backoff.hpp"
#include "base/escape.hpp"
#include "base/log.hpp"
#include "driftd/v1/service.grpc.pb.h"

namespace driftd::op {
namespace {

using Steady = std::chrono::steady_clock;

constexpr const char* kSystemCa = "/etc/ssl/certs/ca-certificates.crt";
constexpr unsigned kFollowFilesSeconds = 5;
constexpr std::chrono::seconds kCallTime{10};
/// An agent that restarts is away for a second or two: that is no reason to write a thousand objects twice.
constexpr std::chrono::seconds kPatience{15};
constexpr int kPage = 1'000;

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

std::shared_ptr<grpc::Channel> channel_to(const AgentAccess& access) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_SERVICE_CONFIG_DISABLE_RESOLUTION, 1);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 2'000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 30'000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 10'000);
  arguments.SetMaxReceiveMessageSize(16 << 20);
  return grpc::CreateCustomChannel(access.target, credentials(access), arguments);
}

Registered registered(const v1::Backend& from) {
  return {from.type(), from.endpoint(), from.source(), from.defined_at()};
}

}  // namespace

/// The connection. Failures are std::runtime_error, whose text has no secret.
class AgentRegistry::Link {
 public:
  explicit Link(AgentAccess access)
      : access_(std::move(access)),
        channel_(channel_to(access_)),
        registry_(v1::BackendRegistry::NewStub(channel_)),
        events_(v1::BackendEvents::NewStub(channel_)) {}

  std::map<std::string, Registered> list() {
    std::map<std::string, Registered> out;
    v1::ListBackendsRequest request;
    request.set_page_size(kPage);
    do {
      v1::ListBackendsResponse page;
      grpc::ClientContext context;
      prepare(context, Steady::now() + kCallTime);
      check("ListBackends", registry_->ListBackends(&context, request, &page));
      for (const auto& backend : page.backends()) out[backend.name()] = registered(backend);
      request.set_page_token(page.next_page_token());
    } while (!request.page_token().empty());
    return out;
  }

  std::optional<Registered> get(const std::string& name) {
    v1::GetBackendRequest request;
    request.set_name(name);
    v1::Backend found;
    grpc::ClientContext context;
    prepare(context, Steady::now() + kCallTime);
    const grpc::Status status = registry_->GetBackend(&context, request, &found);
    if (status.error_code() == grpc::StatusCode::NOT_FOUND) return std::nullopt;
    check("GetBackend", status);
    return registered(found);
  }

  /// Calls `ready` when the stream stands, and `on_backend` for each event, until it ends or `stop` is requested.
  void events(std::stop_token stop, const std::function<void()>& ready,
              const std::function<void(const std::string&)>& on_backend) {
    v1::SubscribeRequest request;
    request.set_subscriber_id("driftd-operator");
    request.set_start(v1::SubscribeRequest::START_NOW);
    for (const auto type : {v1::BACKEND_CHANGE_TYPE_CREATED, v1::BACKEND_CHANGE_TYPE_UPDATED,
                            v1::BACKEND_CHANGE_TYPE_DELETED, v1::BACKEND_CHANGE_TYPE_ENDPOINT_CHANGED}) {
      request.add_event_types(type);
    }
    grpc::ClientContext context;
    add_token(context);
    const std::stop_callback cancel(stop, [&] { context.TryCancel(); });
    const auto stream = events_->Subscribe(&context, request);
    v1::SubscribeResponse message;
    while (stream->Read(&message)) {
      if (message.has_position()) ready();
      if (message.has_event()) on_backend(message.event().backend_name());
      if (message.has_gap()) throw std::runtime_error("events were lost; the registry is read again");
    }
    const grpc::Status status = stream->Finish();
    if (!stop.stop_requested()) check("Subscribe", status);
  }

 private:
  void prepare(grpc::ClientContext& context, Steady::time_point deadline) const {
    context.set_deadline(std::chrono::system_clock::now() + (deadline - Steady::now()));
    add_token(context);
  }
  void add_token(grpc::ClientContext& context) const {
    if (access_.token_file.empty()) return;
    std::ifstream file(access_.token_file, std::ios::binary);
    std::string token{std::istreambuf_iterator<char>(file), {}};
    while (token.ends_with('\n') || token.ends_with('\r')) token.pop_back();
    if (token.empty()) throw std::runtime_error("the token in " + access_.token_file + " cannot be read");
    context.AddMetadata("authorization", "Bearer " + token);
  }
  void check(const std::string& what, const grpc::Status& status) const {
    if (status.ok()) return;
    throw std::runtime_error(what + " of driftd's agent at " + access_.target + ": " + status.error_message());
  }

  const AgentAccess access_;
  const std::shared_ptr<grpc::Channel> channel_;
  const std::unique_ptr<v1::BackendRegistry::Stub> registry_;
  const std::unique_ptr<v1::BackendEvents::Stub> events_;
};

AgentRegistry::AgentRegistry(AgentAccess access, Handlers handlers)
    : link_(std::make_unique<Link>(std::move(access))),
      handlers_(std::move(handlers)) {}

AgentRegistry::~AgentRegistry() = default;

RegistryAnswer AgentRegistry::find(const std::string& backend) const {
  using State = RegistryAnswer::State;
  const std::lock_guard lock(mutex_);
  const bool is_away = !fault_.empty() && Steady::now() - lost_at_ >= kPatience;
  if (is_away) return {State::unreachable, std::nullopt, fault_};
  const auto found = backends_.find(backend);
  if (found != backends_.end()) return {State::known, found->second, {}};  // also while the connection is made again
  if (!read_) return {State::waiting, std::nullopt, {}};
  return {State::known, std::nullopt, {}};
}

bool AgentRegistry::is_connected() const {
  const std::lock_guard lock(mutex_);
  return read_ && fault_.empty();
}

std::string AgentRegistry::fault() const {
  const std::lock_guard lock(mutex_);
  return fault_;
}

bool AgentRegistry::ask(const std::string& backend) {
  const std::lock_guard asking(asking_);
  std::optional<Registered> now = link_->get(backend);
  const std::lock_guard lock(mutex_);
  const auto known = backends_.find(backend);
  if (known == backends_.end() ? !now : now && known->second == *now) return false;
  if (now) {
    backends_[backend] = std::move(*now);
  } else {
    backends_.erase(backend);
  }
  return true;
}

void AgentRegistry::ask_again(const std::string& backend) {
  if (!is_connected()) return;
  try {
    ask(backend);
  } catch (const std::runtime_error& error) {
    log::room("registry").warn("{}", escaped(error.what()));
  }
}

void AgentRegistry::set_fault(std::string why) {
  bool has_changed = false;
  {
    const std::lock_guard lock(mutex_);
    if (fault_ != why && !why.empty()) log::room("registry").warn("{}", escaped(why));
    if (fault_.empty()) lost_at_ = Steady::now();
    if (!why.empty()) read_ = false;
    const bool is_away = !why.empty() && Steady::now() - lost_at_ >= kPatience;
    has_changed = std::exchange(is_away_, is_away) != is_away;
    fault_ = std::move(why);
  }
  if (has_changed) handlers_.all_changed();
}

void AgentRegistry::follow(std::stop_token stop) {
  const auto ready = [&] {
    // The stream stands, so nothing that happens from now on is missed.
    std::unique_lock asking(asking_);
    auto backends = link_->list();
    std::set<std::string> changed;
    bool first = false;
    {
      const std::lock_guard lock(mutex_);
      for (const auto& [name, backend] : backends) {
        const auto known = backends_.find(name);
        if (known == backends_.end() || known->second != backend) changed.insert(name);
      }
      for (const auto& [name, backend] : backends_) {
        if (!backends.contains(name)) changed.insert(name);
      }
      backends_ = std::move(backends);
      first = !std::exchange(read_, true);
    }
    asking.unlock();
    set_fault({});
    log::room("registry").info("reads the registry of driftd's agent");
    if (first) handlers_.all_changed();
    for (const auto& name : changed) handlers_.changed(name);
  };
  link_->events(stop, ready, [&](const std::string& backend) {
    if (ask(backend)) handlers_.changed(backend);
  });
}

void AgentRegistry::run(std::stop_token stop) {
  Backoff backoff(std::chrono::milliseconds(500), std::chrono::seconds(5));
  std::mutex waiting;
  std::condition_variable_any wake;
  while (!stop.stop_requested()) {
    std::string why;
    try {
      follow(stop);
      why = "driftd's agent ended the stream of events";
    } catch (const std::exception& error) {
      why = error.what();
    }
    if (stop.stop_requested()) return;
    if (is_connected()) backoff.reset();
    set_fault(why);
    std::unique_lock lock(waiting);
    wake.wait_for(lock, stop, backoff.next(), [] { return false; });
  }
}

}  // namespace driftd::op
