// SPDX-License-Identifier: Apache-2.0
#include "sinks/kafka/transactions.hpp"

#include <algorithm>
#include <boost/asio/redirect_error.hpp>
#include <chrono>

#include "base/fatal.hpp"
#include "sinks/kafka/failure_text.hpp"

namespace driftd::sinks {
namespace {

using Clock = std::chrono::steady_clock;
using KafkaError = std::unique_ptr<rd_kafka_error_t, decltype(&rd_kafka_error_destroy)>;

constexpr std::size_t kMaxBatch = 512;
constexpr int kMaxTries = 3;      // transactions that abort without a culprit
constexpr int kAbortMs = 10'000;  // for ending a transaction that failed
constexpr int kSliceMs = 1'000;   // of a wait that a stop of the sink ends

KafkaError owned(rd_kafka_error_t* error) { return {error, &rd_kafka_error_destroy}; }

int left_ms(Clock::time_point until) {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, kSliceMs));
}

/// Returns true for an error that concerns the record alone.
bool is_of_record(rd_kafka_resp_err_t error) {
  return error != RD_KAFKA_RESP_ERR_NO_ERROR && classify_failure(error) == core::Attempt::Outcome::permanent;
}

}  // namespace

/// What became of a transaction.
struct Transactions::Verdict {
  rd_kafka_resp_err_t error = RD_KAFKA_RESP_ERR_NO_ERROR;  ///< none: committed
  std::string text;
  bool aborted = false;  ///< nothing of it will ever be visible, and the client can begin another one
};

/// How the records of a transaction are settled.
struct Transactions::Settling {
  const Verdict& verdict;
  bool was_alone = false;
  bool has_culprit = false;  ///< one of its records was refused because of itself
};

/// One transaction. [io]
struct Transactions::Transact {
  Transact(std::shared_ptr<KafkaClient> c, std::shared_ptr<const Batch> b, std::chrono::milliseconds w)
      : client(std::move(c)),
        batch(std::move(b)),
        wait(w) {}

  Verdict operator()() const {
    if (client->stopping()) return {RD_KAFKA_RESP_ERR__DESTROY, "the sink is stopped", false};
    rd_kafka_t* const producer = client->producer();
    const auto until = Clock::now() + wait;
    if (const auto begun = owned(rd_kafka_begin_transaction(producer)); begun) return verdict_of(begun.get(), false);
    bool whole = true;
    for (const auto& item : *batch) {
      item->produced = client->produce(*item->record, item->id);
      whole = whole && item->produced == RD_KAFKA_RESP_ERR_NO_ERROR;
    }
    if (!whole) return abort({RD_KAFKA_RESP_ERR__PARTIAL, "a record of the transaction was refused", false});
    for (;;) {
      const auto failed = owned(rd_kafka_commit_transaction(producer, left_ms(until)));
      if (!failed) return {};
      if (rd_kafka_error_txn_requires_abort(failed.get())) return abort(verdict_of(failed.get(), false));
      if (!rd_kafka_error_is_retriable(failed.get()) || over(until)) return verdict_of(failed.get(), false);
    }
  }

  bool over(Clock::time_point until) const { return Clock::now() >= until || client->stopping(); }
  static Verdict verdict_of(const rd_kafka_error_t* error, bool aborted) {
    return {rd_kafka_error_code(error), rd_kafka_error_string(error), aborted};
  }
  Verdict abort(Verdict why) const {
    const auto until = Clock::now() + std::chrono::milliseconds(kAbortMs);
    for (;;) {
      const auto failed = owned(rd_kafka_abort_transaction(client->producer(), left_ms(until)));
      if (!failed) {
        why.aborted = true;
        return why;
      }
      if (!rd_kafka_error_is_retriable(failed.get()) || over(until)) return verdict_of(failed.get(), false);
    }
  }

  std::shared_ptr<KafkaClient> client;
  std::shared_ptr<const Batch> batch;
  std::chrono::milliseconds wait;
};

Task<RecordReport> Transactions::send(std::shared_ptr<const KafkaRecord> record) {
  const auto item = std::make_shared<Item>(core_, std::move(record));
  waiting_.push_back(item);
  if (!std::exchange(running_, true)) asio::co_spawn(core_, run(shared_from_this()), fatal);
  boost::system::error_code woken;
  while (!item->result.over) co_await item->result.done.async_wait(asio::redirect_error(asio::use_awaitable, woken));
  co_return item->result.report;
}

Task<void> Transactions::run(std::shared_ptr<Transactions> self) {
  while (!self->waiting_.empty()) {
    const auto batch = std::make_shared<const Batch>(self->take());
    for (const auto& item : *batch) {
      item->flight = std::make_shared<RecordFlight>(self->core_);
      item->id = self->deliveries_->expect(item->flight);
    }
    Transact work(self->client_, batch, self->settings_.ack_wait);
    const Verdict verdict = co_await run_on(self->io_, std::move(work));
    self->deliveries_->serve_now();  // the reports of a committed transaction are all in the queue
    self->settle(*batch, verdict);
  }
  self->running_ = false;
}

Transactions::Batch Transactions::take() {
  Batch out;
  while (!waiting_.empty() && out.size() < kMaxBatch) {
    const bool alone = waiting_.front()->alone;
    if (alone && !out.empty()) break;
    out.push_back(std::move(waiting_.front()));
    waiting_.pop_front();
    if (alone) break;
  }
  return out;
}

void Transactions::settle(const Batch& batch, const Verdict& verdict) {
  Settling how{verdict, batch.size() == 1, false};
  for (const auto& item : batch) {
    deliveries_->forget(item->id);
    how.has_culprit = how.has_culprit || is_of_record(report_of(*item).error);
  }
  for (const auto& item : batch) settle_item(item, how);
}

RecordReport Transactions::report_of(const Item& item) {
  if (item.produced != RD_KAFKA_RESP_ERR_NO_ERROR) return {item.produced, "", item.record->partition};
  return item.flight->report;
}

void Transactions::settle_item(const std::shared_ptr<Item>& item, const Settling& how) {
  RecordReport report = report_of(*item);
  if (how.verdict.error == RD_KAFKA_RESP_ERR_NO_ERROR) {
    if (report.error == RD_KAFKA_RESP_ERR_NO_ERROR && !item->flight->over)
      report = {RD_KAFKA_RESP_ERR__MSG_TIMED_OUT, "committed without a report", item->record->partition};
    return item->result.end(std::move(report));
  }
  const bool of_record = is_of_record(report.error);
  if (of_record && how.was_alone) return item->result.end(std::move(report));
  // with a culprit it goes on without counting: each round takes one out
  if (how.verdict.aborted && (how.has_culprit || ++item->tries < kMaxTries)) {
    item->alone = of_record;
    waiting_.push_back(item);
    return;
  }
  // what made a transaction fail may be about another record, and is never the end of this one
  const bool of_another = is_of_record(how.verdict.error);
  report = {of_another ? RD_KAFKA_RESP_ERR__PARTIAL : how.verdict.error, how.verdict.text, item->record->partition};
  report.client_failed = !how.verdict.aborted;
  item->result.end(std::move(report));
}

}  // namespace driftd::sinks
