// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace driftd::test {

/// Speaks Kafka's protocol byte by byte, for what no client library can send: names and metadata of any bytes and
/// length. It has one connection, as the listener's anonymous user, and sends one request at a time. Throws if no
/// answer comes within 30 s.
class KafkaWire {
 public:
  /// `address` is like `127.0.0.1:9092`.
  KafkaWire(const std::string& address, std::string client_id);
  ~KafkaWire();
  KafkaWire(const KafkaWire&) = delete;
  KafkaWire& operator=(const KafkaWire&) = delete;

  /// Makes a group without members by committing an offset of the first partition of `topic`. Returns the broker's
  /// error code, 0 for none.
  int commit(const std::string& group, const std::string& topic) const;
  /// Joins a group as a member of the consumer protocol, with this metadata. The group is rebalancing until the
  /// member's session ends, 60 s later. Returns the broker's error code.
  int join(const std::string& group, const std::string& metadata) const;
  void delete_groups(const std::vector<std::string>& groups) const;
  /// Makes an ACL that allows `principal` to read the topic of that literal name. Returns the broker's error code.
  int allow(const std::string& principal, const std::string& topic) const;

 private:
  std::string ask(int api, int version, const std::string& body) const;
  int fd_;
  std::string client_id_;
};

}  // namespace driftd::test
