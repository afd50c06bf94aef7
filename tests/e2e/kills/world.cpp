// SPDX-License-Identifier: Apache-2.0
#include "world.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>
#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdlib>

namespace driftd::test {
namespace {

using Clock = std::chrono::steady_clock;

/// Asks once. A process that does not listen yet is not ready.
bool ready(int port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const timeval patience{1, 0};
  ::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  std::string answer(64, '\0');
  if (::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0) {
    const std::string request = "GET /readyz HTTP/1.1\r\nHost: 127.0.0.1:" + std::to_string(port) + "\r\n\r\n";
    const bool sent = ::send(fd, request.data(), request.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(request.size());
    if (!sent || ::recv(fd, answer.data(), answer.size(), 0) <= 0) answer.clear();
  }
  ::close(fd);
  return answer.find(" 200 ") != std::string::npos;
}

std::string with_socket(std::string head, const std::string& socket) {
  const auto found = head.find("SOCKET");
  return found == std::string::npos ? head : head.replace(found, 6, socket);
}

std::size_t size_of(const std::string& path) {
  std::error_code absent;
  const auto size = std::filesystem::file_size(path, absent);
  return absent ? 0 : size;
}

}  // namespace

int number_from_env(const char* variable, int fallback) {
  const char* text = std::getenv(variable);
  return text == nullptr ? fallback : std::atoi(text);
}

double percentile(std::vector<double> values, double part) {
  std::sort(values.begin(), values.end());
  const auto rank = static_cast<std::size_t>(std::ceil(part * static_cast<double>(values.size())));
  return values.at(std::max<std::size_t>(rank, 1) - 1);
}

KillWorld::KillWorld(const std::string& head, const std::string& sinks, std::map<std::string, std::string> env)
    : writer(states.file("terraform.tfstate"), dir.file("events.jsonl"), kPerSecond),
      agent(dir,
            "defaults:\n  interval: 100ms\n" + with_socket(head, dir.file("grpc.sock")) +
                "backends:\n  - name: platform\n    provider: terraform\n    settings: { path: " +
                states.file("terraform.tfstate") + " }\nsinks:\n  bus: { type: nats, servers: [\"" + nats.url() +
                "\"], views: false }\n  lines: { type: file, path: " + dir.file("events.jsonl") + ", rotate: 4GiB }\n" +
                sinks,
            std::move(env)) {}

void KillWorld::start() {
  runs.begin();
  agent.start();
}

std::optional<double> KillWorld::start_until_ready() {
  const auto begun = Clock::now();
  start();
  if (!eventually([this] { return ready(agent.admin_port()); })) return std::nullopt;
  return std::chrono::duration<double>(Clock::now() - begun).count();
}

void KillWorld::kill(bool with_workers) {
  if (with_workers) {
    agent.kill();
  } else {
    agent.signal(SIGKILL);
    EXPECT_TRUE(eventually([this] { return !agent.running(); }));
  }
  file_sizes.push_back(size_of(lines()));
}

std::string KillWorld::end_of_log() const {
  const std::string log = agent.log();
  return "\nthe end of the agent's log:\n" + log.substr(log.size() > 4000 ? log.size() - 4000 : 0);
}

}  // namespace driftd::test
