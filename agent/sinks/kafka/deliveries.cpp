// SPDX-License-Identifier: Apache-2.0
#include "sinks/kafka/deliveries.hpp"

#include <fcntl.h>
#include <unistd.h>
#include <boost/asio/post.hpp>
#include <cerrno>

#include "base/fatal.hpp"

namespace driftd::sinks {
namespace {

constexpr int kEventsPerTurn = 64;  // then the core thread serves others first; an event has up to some 1,000 reports

}  // namespace

void RecordFlight::end(RecordReport with) {
  if (over) return;
  report = std::move(with);
  over = true;
  done.cancel();
}

std::shared_ptr<Deliveries> Deliveries::open(const asio::any_io_executor& core, std::shared_ptr<KafkaClient> client,
                                             Reader& reader) {
  const int fd = ::fcntl(client->wake_fd(), F_DUPFD_CLOEXEC, 0);  // the client closes its own
  if (fd < 0) return nullptr;
  std::shared_ptr<Deliveries> out(new Deliveries(core, std::move(client), reader, fd));
  out->serve();  // what waits already wakes nobody
  return out;
}

std::uint64_t Deliveries::expect(std::shared_ptr<RecordFlight> flight) {
  flights_[++last_] = std::move(flight);
  return last_;
}

void Deliveries::give_up(const RecordReport& report) {
  for (auto& [id, flight] : std::exchange(flights_, {})) flight->end(report);
}

void Deliveries::close() {
  reader_ = nullptr;
  boost::system::error_code ignored;
  wake_.close(ignored);
  give_up({RD_KAFKA_RESP_ERR__DESTROY, "the sink is stopped", 0, RD_KAFKA_OFFSET_INVALID});
  client_.reset();
}

void Deliveries::wait() {
  wake_.async_wait(asio::posix::descriptor_base::wait_read,
                   [self = shared_from_this()](const boost::system::error_code& error) {
                     if (!error) self->serve();
                   });
}

/// The library writes to the descriptor when the first event enters an empty queue, so the queue is emptied before the
/// next wait.
void Deliveries::serve() {
  if (reader_ == nullptr) return;
  std::uint64_t count = 0;
  while (::read(client_->wake_fd(), &count, sizeof count) < 0 && errno == EINTR) continue;
  for (int i = 0; i < kEventsPerTurn; ++i) {
    const Event event(rd_kafka_queue_poll(client_->events(), 0));
    if (!event) return wait();
    handle(event.get());
    if (reader_ == nullptr) return;
  }
  asio::post(wake_.get_executor(), [self = shared_from_this()] { self->serve(); });
}

void Deliveries::serve_now() {
  while (reader_ != nullptr) {
    const Event event(rd_kafka_queue_poll(client_->events(), 0));
    if (!event) return;
    handle(event.get());
  }
}

void Deliveries::handle(rd_kafka_event_t* event) {
  if (rd_kafka_event_type(event) == RD_KAFKA_EVENT_ERROR) {
    const char* text = rd_kafka_event_error_string(event);
    return reader_->on_trouble(rd_kafka_event_error(event), text == nullptr ? "" : text,
                               rd_kafka_event_error_is_fatal(event) != 0);
  }
  if (rd_kafka_event_type(event) != RD_KAFKA_EVENT_DR) return;
  while (const rd_kafka_message_t* message = rd_kafka_event_message_next(event)) {
    const auto found = flights_.find(static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(message->_private)));
    if (found == flights_.end()) continue;  // it was given up meanwhile
    const std::shared_ptr<RecordFlight> flight = std::move(found->second);
    flights_.erase(found);
    flight->end({message->err, "", message->partition, message->offset});
  }
}

}  // namespace driftd::sinks
