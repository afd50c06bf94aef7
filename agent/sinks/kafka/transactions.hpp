// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <memory>
#include <string>

#include "sinks/kafka/deliveries.hpp"

namespace driftd::sinks {

/// Sends records in transactions, one after the other: what arrives while one is committed forms the next. A record
/// counts as delivered once its transaction is committed. A record that the topic refuses makes its transaction abort;
/// the other records of it are sent again at once, and a record that may be too large only together with others is
/// tried alone. Core thread.
class Transactions : public std::enable_shared_from_this<Transactions> {
 public:
  Transactions(asio::any_io_executor core, asio::any_io_executor io, std::shared_ptr<KafkaClient> client,
               std::shared_ptr<Deliveries> deliveries, KafkaSettings settings)
      : core_(std::move(core)),
        io_(std::move(io)),
        client_(std::move(client)),
        deliveries_(std::move(deliveries)),
        settings_(std::move(settings)) {}

  /// Returns what became of the record. A report without an error has an offset and is committed.
  Task<RecordReport> send(std::shared_ptr<const KafkaRecord> record);

 private:
  struct Item {
    explicit Item(const asio::any_io_executor& core, std::shared_ptr<const KafkaRecord> r)
        : record(std::move(r)),
          result(core) {}
    std::shared_ptr<const KafkaRecord> record;
    std::shared_ptr<RecordFlight> flight;  ///< of the current transaction
    std::uint64_t id = 0;
    rd_kafka_resp_err_t produced = RD_KAFKA_RESP_ERR_NO_ERROR;
    bool alone = false;
    int tries = 0;
    RecordFlight result;
  };
  using Batch = std::vector<std::shared_ptr<Item>>;
  struct Verdict;
  struct Settling;
  struct Transact;

  static Task<void> run(std::shared_ptr<Transactions> self);
  Batch take();
  void settle(const Batch& batch, const Verdict& verdict);
  void settle_item(const std::shared_ptr<Item>& item, const Settling& how);
  static RecordReport report_of(const Item& item);

  asio::any_io_executor core_, io_;
  std::shared_ptr<KafkaClient> client_;
  std::shared_ptr<Deliveries> deliveries_;
  KafkaSettings settings_;
  std::deque<std::shared_ptr<Item>> waiting_;
  bool running_ = false;
};

}  // namespace driftd::sinks
