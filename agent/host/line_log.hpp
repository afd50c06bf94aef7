// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace driftd::host {

/// Cuts a worker's stderr into lines for the log: 10 a second, 50 at once, 1 KiB each; the rest is counted and dropped.
/// Core thread.
class LineLog {
 public:
  using Now = std::chrono::steady_clock::time_point;
  explicit LineLog(std::function<void(std::string)> print) : print_(std::move(print)) {}
  void feed(std::string_view bytes, Now now);
  void finish(Now now);  ///< prints what is left, and how much was dropped
  std::uint64_t dropped_bytes() const { return dropped_bytes_; }

 private:
  void line(Now now);
  void print_dropped();

  std::function<void(std::string)> print_;
  std::string line_;
  double tokens_ = 50;
  Now filled_{};
  std::uint64_t cut_ = 0, dropped_lines_ = 0, dropped_bytes_ = 0;
};

}  // namespace driftd::host
