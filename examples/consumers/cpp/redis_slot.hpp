// SPDX-License-Identifier: Apache-2.0
// A slot that talks to Redis by hiredis.
#pragma once

#include <hiredis/hiredis.h>
#include <memory>
#include <string>
#include <vector>

#include "connection_pool.hpp"
#include "driftd/consumer/slot.hpp"

namespace example {

class RedisSlot final : public driftd::consumer::Slot {
 public:
  /// Connects. For the slot type `primary` a replica is refused.
  static driftd::consumer::Result<std::shared_ptr<driftd::consumer::Slot>> connect(
      const driftd::consumer::SlotBinding& binding, const driftd::consumer::SlotConfig& config);

  /// The new credential is tried on a new connection before any operation uses it. Redis keeps a connection that has
  /// logged in, so operations that run are not disturbed.
  driftd::consumer::Status update_credentials(const driftd::consumer::SlotConfig& config) override;
  void disconnect() override;

  /// Runs one command and returns its reply as text. `unavailable` if the connection failed. Any thread.
  driftd::consumer::Result<std::string> command(const std::vector<std::string>& words);

 private:
  using Pool = ConnectionPool<redisContext>;
  explicit RedisSlot(const driftd::consumer::SlotConfig& config, Pool::Pointer first);
  Pool pool_;
};

class RedisFactory final : public driftd::consumer::SlotFactory {
 public:
  driftd::consumer::Result<std::shared_ptr<driftd::consumer::Slot>> connect(
      const driftd::consumer::SlotBinding& binding, const driftd::consumer::SlotConfig& config) override {
    return RedisSlot::connect(binding, config);
  }
};

}  // namespace example
