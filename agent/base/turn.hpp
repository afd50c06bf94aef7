// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/steady_timer.hpp>
#include <deque>
#include <memory>
#include <utility>

#include "base/task.hpp"

namespace driftd {

/// First come, first served: one at a time holds the turn, over all that it waits for meanwhile. One thread; outlives
/// everything that it gave to.
class Turn {
 public:
  explicit Turn(asio::any_io_executor core) : core_(std::move(core)) {}

  /// Gives the turn back when it goes out of scope.
  class Held {
   public:
    explicit Held(Turn* turn = nullptr) : turn_(turn) {}
    Held(Held&& other) noexcept : turn_(std::exchange(other.turn_, nullptr)) {}
    Held& operator=(Held&& other) noexcept {
      std::swap(turn_, other.turn_);
      return *this;
    }
    ~Held() {
      if (turn_ != nullptr) turn_->leave();
    }

   private:
    Turn* turn_;
  };

  Task<Held> enter() {
    if (!taken_) {
      taken_ = true;
      co_return Held(this);
    }
    auto bell = std::make_shared<asio::steady_timer>(core_, asio::steady_timer::time_point::max());
    waiting_.push_back(bell);
    co_await bell->async_wait(asio::as_tuple(asio::use_awaitable));
    co_return Held(this);
  }

  bool taken() const { return taken_; }

 private:
  void leave() {
    if (waiting_.empty()) {
      taken_ = false;
      return;
    }
    const auto bell = waiting_.front();  // the turn passes on without being free in between
    waiting_.pop_front();
    bell->cancel();
  }

  asio::any_io_executor core_;
  bool taken_ = false;
  std::deque<std::shared_ptr<asio::steady_timer>> waiting_;
};

}  // namespace driftd
