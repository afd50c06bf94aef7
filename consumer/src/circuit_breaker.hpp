// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>

#include "backoff.hpp"

namespace driftd::consumer {

/// Keeps the slots of one backend from asking a server that refuses all of them. Closed until `failures` attempts in a
/// row failed; then open for a while; then one attempt decides. Not thread-safe.
class CircuitBreaker {
 public:
  using Time = std::chrono::steady_clock::time_point;
  CircuitBreaker(int failures, Backoff open_for) : threshold_(failures), open_for_(open_for) {}

  /// Returns true if an attempt may be made now. After an open time, only one attempt may be until its end is known.
  bool allow(Time now) {
    if (!open_) return true;
    if (now < retry_at_ || probing_) return false;
    probing_ = true;
    return true;
  }
  void succeeded() {
    open_ = probing_ = false;
    failures_ = 0;
    open_for_.reset();
  }
  template <class Random>
  void failed(Time now, Random& random) {
    ++failures_;
    if (!probing_ && (open_ || failures_ < threshold_)) return;
    open_ = true;
    probing_ = false;
    retry_at_ = now + open_for_.next(random);
  }
  /// An attempt that allow() granted was not made.
  void abandoned() { probing_ = false; }
  /// Something changed that may have been the cause: attempts are allowed again.
  void reset() { succeeded(); }
  bool open() const { return open_; }
  Time retry_at() const { return retry_at_; }  ///< while open

 private:
  int threshold_, failures_ = 0;
  bool open_ = false, probing_ = false;
  Backoff open_for_;
  Time retry_at_{};
};

}  // namespace driftd::consumer
