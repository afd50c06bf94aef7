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
    const std::size_t room = kMaxLine - std::min(kMaxLine, line_.size());
    line_ += part.substr(0, room);
    cut_ += part.size() - std::min(part.size(), room);
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
    print_(cut_ > 0 ? line_ + fmt::format(" ({} bytes cut)", cut_) : line_);
    dropped_bytes_ += cut_;
  } else {
    ++dropped_lines_;
    dropped_bytes_ += line_.size() + 1 + cut_;
  }
  cut_ = 0;
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
