// SPDX-License-Identifier: Apache-2.0
#include "delivery/progress_watch.hpp"

#include <utility>

#include "base/log.hpp"

namespace driftd::delivery {

void ProgressWatch::progressed() {
  waiting_since_.reset();
  if (!std::exchange(stall_reported_, false)) return;
  log::room("delivery").info("sink {}: it makes progress again", run_.name);
}

bool ProgressWatch::must_report_stall(bool has_work) {
  if (!has_work) {
    waiting_since_.reset();
    stall_reported_ = false;
  } else if (!waiting_since_) {
    waiting_since_ = run_.now();
  }
  const std::chrono::duration<double> limit = run_.context->settings.stalled_after;
  if (stall_reported_ || stalled_seconds(has_work) < limit.count()) return false;
  stall_reported_ = true;
  return true;
}

bool ProgressWatch::must_report_limit(std::size_t exceptions) {
  const std::size_t max = run_.context->settings.max_exceptions;
  if (exceptions < max) {
    limit_reported_ = limit_reported_ && exceptions >= max / 2;
    return false;
  }
  return !std::exchange(limit_reported_, true);
}

double ProgressWatch::stalled_seconds(bool has_work) const {
  if (!has_work || !waiting_since_) return 0;
  return std::chrono::duration<double>(run_.now() - *waiting_since_).count();
}

}  // namespace driftd::delivery
