// SPDX-License-Identifier: Apache-2.0
// Of driftd-grpc only: without_grpc.cpp is its counterpart in driftd.
#include "app/grpc.hpp"

#include "admin/peer.hpp"
#include "config/places.hpp"
#include "grpc/server.hpp"
#include "host/host.hpp"

namespace driftd::app {
namespace {

Error at_section(const config::Config& config, const Error& error) {
  const auto at = config::find_position(config.places, "grpc");
  return {Code::invalid, config::render(config::ConfigError{config.file, at, error.message, {}, {}, {}})};
}

/// The relay as the host of callbacks.
class RelayHost final : public rpc::SinkHost {
 public:
  RelayHost(core::Outbox& outbox, delivery::Relay& relay, std::function<void(std::vector<core::Route>)> route)
      : outbox_(outbox),
        relay_(relay),
        route_(std::move(route)) {}
  void add(std::string name, std::unique_ptr<core::Sink> sink) override {
    relay_.add_sink(std::move(name), "grpc", std::move(sink));
  }
  Task<Status> start(std::string name, std::unique_ptr<core::Sink> sink) override {
    return relay_.start_sink(std::move(name), "grpc", std::move(sink));
  }
  Task<Status> stop(std::string name) override { return relay_.stop_sink(std::move(name)); }
  Task<Status> remove(std::string name) override { return relay_.remove_sink(std::move(name)); }
  Task<Result<std::vector<std::string>>> stored() override { return outbox_.sinks(); }
  void route(std::vector<core::Route> routes) override { route_(std::move(routes)); }
  std::vector<core::SinkView> views() const override { return relay_.views(); }

 private:
  core::Outbox& outbox_;
  delivery::Relay& relay_;
  const std::function<void(std::vector<core::Route>)> route_;
};

/// Gives processes the rights that they have on the API's socket.
rpc::IdentifyPeer peers_of(const admin::AccessPolicy& policy) {
  return [policy](int socket) -> Result<rpc::Caller> {
    DRIFTD_TRY(const admin::Peer peer, admin::read_peer(socket));
    if (host::is_worker(peer.pid)) return fail(Code::denied, "a plugin may not use the services of its agent");
    const admin::Access access = policy.access(peer);
    const auto rights = access == admin::Access::decide ? rpc::Rights::decide
                        : access == admin::Access::read ? rpc::Rights::read
                                                        : rpc::Rights::none;
    rpc::Caller out{peer.name, rights, {peer.uid, peer.gid, peer.pid, {}}};
    out.gids = peer.groups;
    out.gids.push_back(peer.gid);
    out.confidential = true;
    return out;
  };
}

Status add_group(std::vector<std::uint32_t>& to, const std::string& name, const char* key) {
  if (name.empty()) return {};
  DRIFTD_TRY(const std::uint32_t gid, admin::group_id(name, key));
  to.push_back(gid);
  return {};
}

Result<admin::AccessPolicy> policy_of(const config::Admin& config) {
  admin::AccessPolicy out;
  out.uids = config.uids;
  out.gids = config.gids;
  DRIFTD_CHECK(add_group(out.gids, config.socket_group, "admin.socket_group"));
  DRIFTD_CHECK(add_group(out.read_gids, config.read_group, "admin.read_group"));
  DRIFTD_CHECK(add_group(out.decide_gids, config.decide_group, "admin.decide_group"));
  return out;
}

class Services final : public Grpc {
 public:
  Services(std::unique_ptr<RelayHost> host, std::unique_ptr<rpc::Server> server)
      : host_(std::move(host)),
        server_(std::move(server)) {}
  Task<Status> load() override { return server_->load(); }
  Task<Status> start() override { return server_->start(); }
  void wake() override { server_->wake(); }
  Task<void> stop() override { return server_->stop(); }
  Task<void> audit_unwritten_denials(bool all) override { return server_->audit_unwritten_denials(all); }

 private:
  std::unique_ptr<RelayHost> host_;  ///< outlives the server
  std::unique_ptr<rpc::Server> server_;
};

}  // namespace

Status become_driftd_grpc(const config::Config&) { return {}; }

Status check_grpc(const config::Config& config) {
  return config.grpc.present && config.secrets_resolved ? rpc::check_settings(config.grpc) : Status{};
}

Result<std::unique_ptr<Grpc>> make_grpc(const config::Config& config, GrpcNeeds needs) {
  if (!config.grpc.present) return std::unique_ptr<Grpc>();
  DRIFTD_TRY(const admin::AccessPolicy policy, policy_of(config.admin));
  auto host = std::make_unique<RelayHost>(needs.outbox, needs.relay, std::move(needs.route));
  auto server =
      rpc::Server::open(config.grpc, {needs.executors.core.get_executor(), needs.executors.io.get_executor(),
                                      needs.reader, needs.subscriptions, *host, needs.manual, std::move(needs.backends),
                                      peers_of(policy), std::move(needs.audit), needs.credentials});
  if (server) return std::make_unique<Services>(std::move(host), std::move(*server));
  return fail(at_section(config, server.error()));
}

}  // namespace driftd::app
