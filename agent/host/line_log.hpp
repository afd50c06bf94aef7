// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "ipc/text.hpp"

namespace driftd::host {

/// Cuts a worker's stderr into lines for the log, without its secrets: 10 a second, 50 at once, 1 KiB each; the rest is
/// counted and dropped. Core thread.
class LineLog {
 public:
  using Now = std::chrono::steady_clock::time_point;
  /// The scrubber must outlive it.
  LineLog(std::function<void(std::string)> print, const ipc::Scrubber& scrubber)
      : print_(std::move(print)),
        scrubber_(scrubber) {}
  void feed(std::string_view bytes, Now now);
  void finish(Now now);  ///< prints what is left, and how much was dropped
  std::uint64_t dropped_bytes() const { return dropped_bytes_; }

 private:
  void line(Now now);
  void print_dropped();

  std::function<void(std::string)> print_;
  const ipc::Scrubber& scrubber_;
  std::string line_;             ///< what is shown of it, and what lies across its cut
  std::uint64_t line_size_ = 0;  ///< bytes, as it came
  double tokens_ = 50;
  Now filled_{};
  std::uint64_t dropped_lines_ = 0, dropped_bytes_ = 0;
};

}  // namespace driftd::host
