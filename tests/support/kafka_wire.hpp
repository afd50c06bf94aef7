// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace driftd::test {

/// Kafka's protocol byte for byte, for what no client library can send: names and metadata of any bytes and length.
/// One connection as the listener's anonymous user, one request at a time. Throws where no answer comes within 30 s.
class KafkaWire {
 public:
  KafkaWire(const std::string& address, std::string client_id);  ///< `127.0.0.1:9092`
  ~KafkaWire();
  KafkaWire(const KafkaWire&) = delete;
  KafkaWire& operator=(const KafkaWire&) = delete;

  /// A group that only commits offsets, of the first partition of `topic`: the broker's error code, 0 for none.
  int commit(const std::string& group, const std::string& topic) const;
  /// A member joins by the consumer protocol; the group is rebalancing until its session ends, 60 s later.
  int join(const std::string& group, const std::string& metadata) const;
  void delete_groups(const std::vector<std::string>& groups) const;
  /// Allows `principal` to read the topics of that literal name.
  int allow(const std::string& principal, const std::string& topic) const;

 private:
  std::string ask(int api, int version, const std::string& body) const;
  int fd_;
  std::string client_id_;
};

}  // namespace driftd::test
