// SPDX-License-Identifier: Apache-2.0
#include "support/nats_cluster.hpp"

#include <stdexcept>

namespace driftd::test {
namespace {

constexpr std::size_t kNodes = 3;

std::string quoted(const std::string& text) { return '"' + text + '"'; }

}  // namespace

const CurrentNats& current_nats() {
  static const CurrentNats programs = [] {
    const Output built = run({DRIFTD_SOURCE_DIR "/tests/servers/nats/build.sh"}, {}, std::chrono::minutes(20));
    if (built.code != 0) throw std::runtime_error("tests/servers/nats/build.sh: " + built.err);
    const std::string folder = built.out.substr(0, built.out.find('\n'));
    return CurrentNats{folder + "/nats-server", folder + "/credentials"};
  }();
  return programs;
}

NatsCluster::NatsCluster(const std::string& program, Login login) : program_(program), nodes_(kNodes) {
  for (auto& node : nodes_) {
    node.port = free_port();
    node.cluster_port = free_port();
  }
  const Output made = run({current_nats().credentials, dir_.path().string()}, {}, std::chrono::seconds(30));
  if (made.code != 0) throw std::runtime_error("credentials: " + made.err);
  certificates_.issue("server", "127.0.0.1", "IP:127.0.0.1,DNS:localhost");
  certificates_.issue("client", "driftd", "DNS:driftd");
  access_.ca = certificates_.ca();
  access_.certificate = certificates_.certificate("client");
  access_.key = certificates_.key("client");
  const std::string text = login == Login::nkey ? nkey_login() : operator_login();
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    write_config(i, text);
    start(i);
  }
  const bool formed =
      eventually([this] { return stream_state(urls(), access_, "none").has_value(); }, std::chrono::seconds(60));
  if (!formed) throw std::runtime_error("the cluster has no JetStream leader: " + read_file(dir_.file("n0.log")));
}

std::string NatsCluster::nkey_login() {
  access_.nkey_public = read_file(dir_.file("user.pub"));
  access_.nkey_seed_file = dir_.file("user.nk");
  return "accounts { APP { jetstream: enabled, users: [ { nkey: " + access_.nkey_public +
         " } ] }, SYS { users: [] } }\nsystem_account: SYS\n";
}

std::string NatsCluster::operator_login() {
  access_.credentials = dir_.file("user.creds");
  return read_file(dir_.file("operator.conf"));
}

NatsAccess NatsCluster::stranger() const {
  NatsAccess out = access_;
  out.credentials = dir_.file("stranger.creds");
  return out;
}

void NatsCluster::write_config(std::size_t node, const std::string& login) const {
  const std::string tls = "tls { cert_file: " + quoted(certificates_.certificate("server")) +
                          ", key_file: " + quoted(certificates_.key("server")) +
                          ", ca_file: " + quoted(certificates_.ca()) + ", verify: true }\n";
  std::string routes;
  for (const auto& one : nodes_)
    routes += (routes.empty() ? "\"" : ", \"") + ("nats-route://127.0.0.1:" + std::to_string(one.cluster_port)) + "\"";
  const std::string name = "n" + std::to_string(node);
  dir_.write(name + ".conf",
             "server_name: " + name + "\nlisten: \"127.0.0.1:" + std::to_string(nodes_[node].port) +
                 "\"\njetstream { store_dir: " + quoted(dir_.file(name)) +
                 ", max_file_store: 1G, max_memory_store: 64M }\n" + tls +
                 "cluster { name: test, listen: \"127.0.0.1:" + std::to_string(nodes_[node].cluster_port) +
                 "\", routes: [" + routes + " ]\n" + tls + "}\n" + login);
}

void NatsCluster::start(std::size_t node) {
  const std::string name = "n" + std::to_string(node);
  nodes_[node].child = Child({program_, "-c", dir_.file(name + ".conf")}, {dir_.file(name + ".log"), {}, {}});
}

std::vector<std::string> NatsCluster::urls() const {
  std::vector<std::string> out;
  for (const auto& node : nodes_) out.push_back("tls://127.0.0.1:" + std::to_string(node.port));
  return out;
}

std::optional<std::size_t> NatsCluster::leader(const std::string& stream) const {
  const auto info = stream_state(urls(), access_, stream);
  if (!info || info->leader.empty()) return std::nullopt;
  return static_cast<std::size_t>(std::stoul(info->leader.substr(1)));
}

int NatsCluster::replicas(const std::string& stream) const {
  const auto info = stream_state(urls(), access_, stream);
  return info ? info->replicas : -1;
}

std::vector<NatsReceived> NatsCluster::contents(const std::string& stream) const {
  std::vector<NatsReceived> out;
  const bool answered = eventually(
      [&] {
        try {
          out = stream_contents(urls(), access_, stream);
          return true;
        } catch (const std::runtime_error&) {  // no leader at the moment
          return false;
        }
      },
      std::chrono::seconds(60));
  if (!answered) throw std::runtime_error("stream " + stream + " cannot be read");
  return out;
}

}  // namespace driftd::test
