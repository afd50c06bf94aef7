// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <fstream>
#include <mutex>
#include <string>
#include <thread>

#include "ledger.hpp"

namespace driftd::test {

/// Changes resources of a Terraform state at a steady rate, as applies do, whether or not an agent runs. Each change
/// gives one resource its next number. No resource is changed again before the file sink has its last change: the agent
/// sees states and not changes, so it could skip a number without a fault.
class StateWriter {
 public:
  static constexpr int kResources = 1'000;

  /// Writes the first state to `state`. `lines` is the file of the file sink.
  StateWriter(std::string state, std::string lines, int per_second);
  ~StateWriter() { stop(); }
  StateWriter(const StateWriter&) = delete;
  StateWriter& operator=(const StateWriter&) = delete;

  void start();
  void stop();  ///< returns when no further change comes
  std::size_t count() const;
  /// Waits until `more` further changes are written. Returns false if that takes longer than a minute.
  bool wait_for(std::size_t more) const;
  Written written() const;
  double per_second() const;    ///< the rate that was reached
  double held_seconds() const;  ///< the longest time during which it waited for the file sink

 private:
  using Clock = std::chrono::steady_clock;
  void work();
  void change(std::size_t due);
  void read_lines();
  void replace();

  const std::string state_;
  const int per_second_;
  std::ifstream lines_;
  std::string lines_path_, rest_;
  long serial_ = 0;
  mutable std::mutex mutex_;  // guards all below
  mutable std::condition_variable changed_;
  std::vector<int> values_, arrived_;
  std::size_t count_ = 0;
  bool stopping_ = false;
  Clock::time_point begun_, moved_;
  Clock::duration worked_{}, held_{};
  std::thread thread_;
};

}  // namespace driftd::test
