// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <map>
#include <memory>
#include <string>

#include "base/task.hpp"
#include "sinks/kafka/client.hpp"

namespace driftd::sinks {

/// What became of one record.
struct RecordReport {
  rd_kafka_resp_err_t error = RD_KAFKA_RESP_ERR_NO_ERROR;
  std::string text;  ///< more than the error's own text; may be empty
  std::int32_t partition = 0;
  std::int64_t offset = RD_KAFKA_OFFSET_INVALID;
  bool client_failed = false;  ///< the client is left in a state in which it can send no more
};

/// One record in flight. Core thread.
struct RecordFlight {
  explicit RecordFlight(const asio::any_io_executor& core) : done(core, asio::steady_timer::time_point::max()) {}
  void end(RecordReport with);

  asio::steady_timer done;
  bool over = false;
  RecordReport report;
};

/// Takes the delivery reports and errors of a client from its queue, on the core thread. Nothing of it runs on the
/// library's threads. After close() reports are ignored. Core thread.
class Deliveries : public std::enable_shared_from_this<Deliveries> {
 public:
  class Reader {
   public:
    virtual ~Reader() = default;
    /// `fatal`: the client is of no use any more.
    virtual void on_trouble(rd_kafka_resp_err_t error, const std::string& text, bool fatal) = 0;
  };
  static std::shared_ptr<Deliveries> open(const asio::any_io_executor& core, std::shared_ptr<KafkaClient> client,
                                          Reader& reader);

  /// Returns the number to give to KafkaClient::produce(). `flight` ends when its report arrives.
  std::uint64_t expect(std::shared_ptr<RecordFlight> flight);
  void forget(std::uint64_t id) { flights_.erase(id); }
  /// Ends every flight with this report, because none will come.
  void give_up(const RecordReport& report);
  /// Handles what is in the queue now.
  void serve_now();
  void close();

 private:
  Deliveries(const asio::any_io_executor& core, std::shared_ptr<KafkaClient> client, Reader& reader, int fd)
      : client_(std::move(client)),
        reader_(&reader),
        wake_(core, fd) {}
  void wait();
  void serve();
  void handle(rd_kafka_event_t* event);

  std::shared_ptr<KafkaClient> client_;
  Reader* reader_;  ///< null once closed
  asio::posix::stream_descriptor wake_;
  std::map<std::uint64_t, std::shared_ptr<RecordFlight>> flights_;
  std::uint64_t last_ = 0;
};

}  // namespace driftd::sinks
