// SPDX-License-Identifier: Apache-2.0
#include "host/worker_channel.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/write.hpp>

namespace driftd::host {

WorkerChannel::WorkerChannel(asio::any_io_executor core, int fd) : socket_(core, asio::local::stream_protocol(), fd) {}

void WorkerChannel::send(ipc::FrameType type, std::uint64_t call, std::string payload) {
  if (!socket_.is_open()) return;
  outgoing_.push_back(render(ipc::Frame{type, call, std::move(payload)}));
  if (!writing_) write_next();
}

void WorkerChannel::write_next() {
  writing_ = !outgoing_.empty() && socket_.is_open();
  if (!writing_) return;
  asio::async_write(socket_, asio::buffer(outgoing_.front()),
                    [self = shared_from_this()](const boost::system::error_code& failed, std::size_t) {
                      self->outgoing_.pop_front();
                      if (failed) self->outgoing_.clear();  // receive() notices the end and reports why
                      self->write_next();
                    });
}

Task<Status> WorkerChannel::receive(std::shared_ptr<WorkerChannel> self, std::function<void(ipc::Frame)> on_frame) {
  ipc::FrameReader reader;
  std::string buffer(128u << 10, '\0');
  for (;;) {
    boost::system::error_code failed;
    const std::size_t got =
        co_await self->socket_.async_read_some(asio::buffer(buffer), asio::redirect_error(asio::use_awaitable, failed));
    if (failed) co_return Status{};
    reader.feed({buffer.data(), got});
    for (;;) {
      DRIFTD_CO_TRY(auto frame, reader.next());
      if (!frame) break;
      on_frame(std::move(*frame));
      if (!self->socket_.is_open()) co_return Status{};
    }
  }
}

void WorkerChannel::close() {
  boost::system::error_code ignored;  // closing twice is not a failure
  socket_.close(ignored);
}

}  // namespace driftd::host
