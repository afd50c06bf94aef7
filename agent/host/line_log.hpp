// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "ipc/text.hpp"

namespace driftd::host {

/// Cuts a worker's stderr into log lines without secrets: 10 lines a second, bursts of 50, 1 KiB a line. What is more
/// is counted and dropped. Owned by a WorkerRun. Core thread.
class LineLog {
 public:
  using Now = std::chrono::steady_clock::time_point;
  /// `print` gets each line without its end, printable. The scrubber must outlive this object.
  LineLog(std::function<void(std::string)> print, const ipc::Scrubber& scrubber)
      : print_(std::move(print)),
        scrubber_(scrubber) {}
  /// Takes what was read, in any pieces; an unfinished line waits for its end. Of a long one only the
  /// beginning is kept.
  void feed(std::string_view bytes, Now now);
  void finish(Now now);  ///< prints the unfinished line and the number of dropped lines
  std::uint64_t dropped_bytes() const { return dropped_bytes_; }  ///< of cut and of dropped lines, so far

 private:
  void line(Now now);
  void print_dropped();

  std::function<void(std::string)> print_;
  const ipc::Scrubber& scrubber_;
  std::string line_;             ///< the shown part and as much as a secret across the cut may take
  std::uint64_t line_size_ = 0;  ///< bytes of the whole line as it was received
  double tokens_ = 50;           ///< lines that may be printed now
  Now filled_{};                 ///< when tokens_ was last increased; epoch: never
  std::uint64_t dropped_lines_ = 0, dropped_bytes_ = 0;
};

}  // namespace driftd::host
