// SPDX-License-Identifier: Apache-2.0
#include "sinks/kafka/lane.hpp"

#include <boost/asio/redirect_error.hpp>

namespace driftd::sinks {

Task<void> Lane::enter(bool alone) {
  if (alone) ++alone_;
  boost::system::error_code woken;
  while (closed_to(alone)) co_await changed_.async_wait(asio::redirect_error(asio::use_awaitable, woken));
  ++inside_;
  is_alone_ = alone;
}

void Lane::leave() {
  --inside_;
  if (std::exchange(is_alone_, false)) --alone_;
  changed_.cancel();
}

}  // namespace driftd::sinks
