// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>

namespace driftd::consumer {

/// The RFC's three metrics of a pattern. Any thread.
class PatternMetrics {
 public:
  explicit PatternMetrics(std::string pattern) : pattern_(std::move(pattern)) {}
  /// Makes the backend's counters visible at 0.
  void add_backend(const std::string& backend);
  void event_received(const std::string& backend);
  /// From the event's arrival to the last slot that uses the new credential.
  void credential_rotated(std::chrono::nanoseconds took);
  void reconnected(const std::string& backend);
  std::string render() const;

 private:
  struct Counters {
    std::uint64_t events = 0, reconnects = 0;
  };
  const std::string pattern_;
  mutable std::mutex mutex_;
  std::map<std::string, Counters> by_backend_;
  double rotation_seconds_ = 0;
};

}  // namespace driftd::consumer
