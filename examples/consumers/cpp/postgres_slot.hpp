// SPDX-License-Identifier: Apache-2.0
// A slot that talks to PostgreSQL by libpq.
#pragma once

#include <libpq-fe.h>
#include <memory>
#include <string>

#include "connection_pool.hpp"
#include "driftd/consumer/slot.hpp"

namespace example {

class PostgresSlot final : public driftd::consumer::Slot {
 public:
  /// Connects. For the slot type `primary` a standby is refused.
  static driftd::consumer::Result<std::shared_ptr<driftd::consumer::Slot>> connect(
      const driftd::consumer::SlotBinding& binding, const driftd::consumer::SlotConfig& config);
  /// The new credential is tried on a new connection before any operation uses it. PostgreSQL keeps a session whose
  /// password was changed, so statements that run are not disturbed.
  driftd::consumer::Status update_credentials(const driftd::consumer::SlotConfig& config) override;
  void disconnect() override;

  /// Runs one statement and returns the first column of its first row. `unavailable` if the connection failed. Any
  /// thread.
  driftd::consumer::Result<std::string> query(const std::string& statement);

 private:
  using Pool = ConnectionPool<PGconn>;
  explicit PostgresSlot(const driftd::consumer::SlotConfig& config, Pool::Pointer first);
  Pool pool_;
};

class PostgresFactory final : public driftd::consumer::SlotFactory {
 public:
  driftd::consumer::Result<std::shared_ptr<driftd::consumer::Slot>> connect(
      const driftd::consumer::SlotBinding& binding, const driftd::consumer::SlotConfig& config) override {
    return PostgresSlot::connect(binding, config);
  }
};

}  // namespace example
