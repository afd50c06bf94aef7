// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "kube/object_client.hpp"

namespace driftd::op {

/// Writes Events for people, which `kubectl describe` shows. The same again within ten minutes is not written: the
/// condition of the object has it. An Event that cannot be written is logged, and nothing depends on it. Any thread.
class KubeEvents {
 public:
  struct Note {
    bool warning = false;
    std::string reason;   ///< one word in CamelCase
    std::string message;  ///< at most 1,024 bytes are kept
  };

  explicit KubeEvents(std::string instance);

  /// One about an object of the cluster is in the namespace `default`: the API server takes it nowhere else.
  void write(sdk::Call& call, kube::ObjectClient& client, const nlohmann::json& about, const Note& note);

 private:
  using Clock = std::chrono::steady_clock;
  bool is_new(const std::string& key);

  const std::string instance_;
  std::atomic<std::uint64_t> number_;  ///< makes the names of Events unique
  std::mutex mutex_;
  std::map<std::string, Clock::time_point> written_;  ///< by object, reason and message
};

}  // namespace driftd::op
