// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mutex>

#include "terraform/cursor.hpp"

namespace driftd::terraform {

/// The last reading that was told whole. Any thread.
class Memory {
 public:
  /// That one; where nothing was told yet in this process, what a cursor of an earlier one knew.
  Cursor last(const Cursor& otherwise) const {
    const std::lock_guard lock(mutex_);
    return told_ ? last_ : otherwise;
  }
  void remember(const Cursor& cursor) {
    const std::lock_guard lock(mutex_);
    last_ = cursor;
    told_ = true;
  }

 private:
  mutable std::mutex mutex_;
  Cursor last_;
  bool told_ = false;
};

}  // namespace driftd::terraform
