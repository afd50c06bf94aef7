// SPDX-License-Identifier: Apache-2.0
// The layouts are from kafka.apache.org/protocol, in the oldest versions that Kafka 4.0 still answers (KIP-896).
#include "support/kafka_wire.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>
#include <stdexcept>

#include "support/process.hpp"

namespace driftd::test {
namespace {

/// Returns a big-endian number.
std::string number(std::uint64_t value, int bytes) {
  std::string out;
  for (int shift = (bytes - 1) * 8; shift >= 0; shift -= 8) out.push_back(static_cast<char>(value >> shift));
  return out;
}
std::string text(const std::string& value) { return number(value.size(), 2) + value; }
std::string bytes(const std::string& value) { return number(value.size(), 4) + value; }

/// Returns the error code, 16 bits, at an offset of an answer.
int error_at(const std::string& answer, std::size_t at) {
  if (answer.size() < at + 2) throw std::runtime_error("Kafka's answer is too short");
  return static_cast<std::int16_t>((static_cast<unsigned char>(answer[at]) << 8) |
                                   static_cast<unsigned char>(answer[at + 1]));
}

enum Api { kOffsetCommit = 8, kFindCoordinator = 10, kJoinGroup = 11, kCreateAcls = 30, kDeleteGroups = 42 };

// COORDINATOR_LOAD_IN_PROGRESS and NOT_COORDINATOR: the broker is not yet ready for this group.
constexpr int kLoading = 14, kNotCoordinator = 16;

}  // namespace

KafkaWire::KafkaWire(const std::string& address, std::string client_id)
    : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)),
      client_id_(std::move(client_id)) {
  const timeval max_wait{30, 0};
  ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &max_wait, sizeof max_wait);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  to.sin_port = htons(static_cast<std::uint16_t>(std::stoi(address.substr(address.rfind(':') + 1))));
  if (::connect(fd_, reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0)
    throw std::runtime_error("cannot connect to Kafka at " + address);
  // The first request for a coordinator makes the topic __consumer_offsets, in which Kafka stores groups.
  const auto has_coordinator = [this] {
    return error_at(ask(kFindCoordinator, 1, text("any") + number(0, 1)), 4) == 0;
  };
  if (!eventually(has_coordinator, std::chrono::seconds(60))) throw std::runtime_error("Kafka names no coordinator");
}

KafkaWire::~KafkaWire() { ::close(fd_); }

std::string KafkaWire::ask(int api, int version, const std::string& body) const {
  const std::string request = number(static_cast<unsigned>(api), 2) + number(static_cast<unsigned>(version), 2) +
                              number(7, 4) + text(client_id_) + body;
  const std::string framed = bytes(request);
  for (std::size_t sent = 0; sent < framed.size();) {
    const ssize_t wrote = ::send(fd_, framed.data() + sent, framed.size() - sent, MSG_NOSIGNAL);
    if (wrote <= 0) throw std::runtime_error("Kafka closed the connection on request " + std::to_string(api));
    sent += static_cast<std::size_t>(wrote);
  }
  const auto read = [&](std::size_t size) {
    std::string out(size, '\0');
    if (::recv(fd_, out.data(), size, MSG_WAITALL) != static_cast<ssize_t>(size)) {
      throw std::runtime_error("Kafka did not answer request " + std::to_string(api));
    }
    return out;
  };
  std::uint32_t size = 0;
  for (const char c : read(4)) size = size << 8 | static_cast<unsigned char>(c);
  return read(size).substr(4);  // skips the correlation id
}

int KafkaWire::commit(const std::string& group, const std::string& topic) const {
  const std::string no_member = number(~0ull, 4) + text("") + number(~0ull, 8);  // generation -1, no member, retention
                                                                                 // -1
  const std::string body =
      text(group) + no_member + number(1, 4) + text(topic) + number(1, 4) + number(0, 4) + number(1, 8) + text("");
  int error = 0;
  eventually([&] {
    error = error_at(ask(kOffsetCommit, 2, body), 4 + 2 + topic.size() + 4 + 4);
    return error != kLoading && error != kNotCoordinator;
  });
  return error;
}

int KafkaWire::join(const std::string& group, const std::string& metadata) const {
  const std::string answer = ask(kJoinGroup, 2,
                                 text(group) + number(60'000, 4) + number(60'000, 4) + text("") + text("consumer") +
                                     number(1, 4) + text("range\xff\x1b[2J") + bytes(metadata));
  return error_at(answer, 4);
}

void KafkaWire::delete_groups(const std::vector<std::string>& groups) const {
  std::string body = number(groups.size(), 4);
  for (const auto& group : groups) body += text(group);
  ask(kDeleteGroups, 0, body);
}

int KafkaWire::allow(const std::string& principal, const std::string& topic) const {
  constexpr int kTopic = 2, kLiteral = 3, kRead = 3, kAllow = 3;
  return error_at(ask(kCreateAcls, 1,
                      number(1, 4) + number(kTopic, 1) + text(topic) + number(kLiteral, 1) + text(principal) +
                          text("*") + number(kRead, 1) + number(kAllow, 1)),
                  8);
}

}  // namespace driftd::test
