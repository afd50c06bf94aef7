// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/steady_timer.hpp>

#include "base/task.hpp"

namespace driftd::sinks {

/// Lets one record be sent while no other is in flight, so that its refusal is about itself and not about the batch
/// that it was part of. Core thread.
class Lane {
 public:
  explicit Lane(const asio::any_io_executor& core) : changed_(core, asio::steady_timer::time_point::max()) {}

  /// Returns when the record may be sent: at once unless another one wants to be alone, or, with `alone`, once all
  /// others have left.
  Task<void> enter(bool alone);
  void leave();

 private:
  bool closed_to(bool alone) const { return alone ? inside_ > 0 : alone_ > 0; }

  asio::steady_timer changed_;
  int inside_ = 0, alone_ = 0;  ///< alone_: records that are or wait to be alone
  bool is_alone_ = false;
};

}  // namespace driftd::sinks
