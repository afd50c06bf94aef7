// SPDX-License-Identifier: Apache-2.0
#include "sinks/file/file_sink.hpp"

#include <boost/asio/strand.hpp>

#include "proto/codec.hpp"
#include "sinks/file/log_file.hpp"

namespace driftd::sinks {
namespace {

using core::Attempt;

constexpr int kMaxInFlight = 512;
constexpr std::string_view kLoss = "its file was removed or renamed by somebody else, or could not be synced";

class FileSink final : public core::Sink {
 public:
  FileSink(std::string name, FileSettings settings, const asio::any_io_executor& io)
      : name_(std::move(name)),
        where_(settings.path.empty() ? "stdout" : settings.path.string()),
        file_(std::make_shared<LogFile>(std::move(settings))),
        strand_(asio::make_strand(io)) {}

  core::RetryPolicy policy() const override { return {true, {}, kMaxInFlight}; }
  Task<Status> start() override {
    auto work = [file = file_] { return file->open(); };  // a local: g++ 12 destroys temporaries of co_await twice
    const Status opened = co_await run_on(strand_, std::move(work));
    error_ = opened ? "" : opened.error().message;
    co_return opened;
  }
  Task<Attempt> send(core::StoredEvent event) override;
  Task<Status> flush() override {
    auto work = [file = file_] { return file->sync(); };
    co_return co_await run_on(strand_, std::move(work));
  }
  std::string_view unflushed_loss() const override { return file_->lost() ? kLoss : std::string_view(); }
  void begin_again() override { file_->begin_again(); }  // nothing is in flight, so nothing runs on strand_
  Task<void> stop() override {
    const Status synced = co_await flush();
    if (!synced) error_ = synced.error().message;
  }
  std::string describe() const override { return error_.empty() ? "writing " + where_ : error_; }

 private:
  std::string name_, where_, error_;
  std::shared_ptr<LogFile> file_;  ///< used on strand_ only, but for lost() and begin_again()
  asio::any_io_executor strand_;
};

Task<Attempt> FileSink::send(core::StoredEvent event) {
  auto line = proto::cloudevent_json(event);
  if (!line) co_return Attempt{Attempt::Outcome::permanent, line.error().message, 0};
  const auto text = std::make_shared<const std::string>(std::move(*line));  // by pointer: see nats_sink.cpp, Connect
  auto work = [file = file_, text] { return file->write(*text); };
  const Status written = co_await run_on(strand_, std::move(work));
  error_ = written ? "" : written.error().message;
  if (!written) co_return Attempt{Attempt::Outcome::retry_sink, error_, 0};
  co_return Attempt{};
}

}  // namespace

std::unique_ptr<core::Sink> open_file(std::string name, FileSettings settings, asio::any_io_executor io) {
  return std::make_unique<FileSink>(std::move(name), std::move(settings), std::move(io));
}

}  // namespace driftd::sinks
