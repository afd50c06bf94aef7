// SPDX-License-Identifier: Apache-2.0
#include "host/line_log.hpp"

#include <fmt/format.h>
#include <algorithm>

namespace driftd::host {
namespace {

constexpr std::size_t kMaxLine = 1024;
constexpr double kLinesPerSecond = 10;
constexpr double kBurst = 50;

}  // namespace

void LineLog::feed(std::string_view bytes, Now now) {
  while (!bytes.empty()) {
    const std::size_t end = bytes.find('\n');
    const std::string_view part = bytes.substr(0, end);
    const std::size_t max_size = kMaxLine + scrubber_.lookahead() + 1;
    line_ += part.substr(0, max_size - std::min(max_size, line_.size()));
    line_size_ += part.size();
    if (end == std::string_view::npos) return;
    line(now);
    bytes.remove_prefix(end + 1);
  }
}

void LineLog::line(Now now) {
  if (filled_ == Now{}) filled_ = now;
  tokens_ = std::min(kBurst, tokens_ + kLinesPerSecond * std::chrono::duration<double>(now - filled_).count());
  filled_ = now;
  if (tokens_ >= 1) {
    tokens_ -= 1;
    print_dropped();
    const std::uint64_t cut = line_size_ - std::min<std::uint64_t>(line_size_, kMaxLine);
    print_(scrubber_.printable(line_, kMaxLine) + (cut > 0 ? fmt::format(" ({} bytes cut)", cut) : ""));
    dropped_bytes_ += cut;
  } else {
    ++dropped_lines_;
    dropped_bytes_ += line_size_ + 1;
  }
  line_size_ = 0;
  line_.clear();
}

void LineLog::print_dropped() {
  if (dropped_lines_ == 0) return;
  print_(fmt::format("({} lines dropped before this one)", dropped_lines_));
  dropped_lines_ = 0;
}

void LineLog::finish(Now now) {
  if (!line_.empty()) line(now);
  print_dropped();
}

}  // namespace driftd::host
