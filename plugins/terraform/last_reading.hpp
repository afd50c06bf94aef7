// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mutex>

#include "terraform/cursor.hpp"

namespace driftd::terraform {

/// The last reading that was emitted completely. Thread-safe.
class LastReading {
 public:
  /// Returns that reading; if this process has none yet, returns `otherwise` (the cursor of an earlier process).
  Cursor value_or(const Cursor& otherwise) const {
    const std::lock_guard lock(mutex_);
    return has_value_ ? last_ : otherwise;
  }
  void remember(const Cursor& cursor) {  ///< replaces the one before it
    const std::lock_guard lock(mutex_);
    last_ = cursor;
    has_value_ = true;
  }

 private:
  mutable std::mutex mutex_;
  Cursor last_;
  bool has_value_ = false;
};

}  // namespace driftd::terraform
