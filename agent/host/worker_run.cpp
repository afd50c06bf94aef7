// SPDX-License-Identifier: Apache-2.0
#include "host/worker_run.hpp"

#include <fmt/format.h>
#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/redirect_error.hpp>

#include "base/fatal.hpp"
#include "base/log.hpp"

namespace driftd::host {
namespace {

constexpr std::size_t kErrorsBuffer = 64u << 10;  // bytes of stderr that are read at once

std::uint64_t next_number() {
  static std::uint64_t last = 0;  // core thread
  return ++last;
}

}  // namespace

WorkerRun::WorkerRun(asio::any_io_executor core, const ipc::Scrubber& scrubber)
    : core_(std::move(core)),
      scrubber_(scrubber),
      number_(next_number()) {}

Status WorkerRun::start(const SupervisorSpec& spec, const std::string& program) {
  const bool threads = spec.session.isolation == core::SessionSpec::Isolation::in_process;
  const int library = spec.bytes->descriptor();
  DRIFTD_TRY(auto started, threads ? start_threads(core_, library) : start_process(core_, program, library));
  worker_ = std::move(started.worker);
  channel_ = std::make_shared<WorkerChannel>(core_, started.fd);
  if (worker_->errors() == nullptr) return {};
  errors_ = std::make_unique<LineLog>(
      [backend = spec.session.backend](const std::string& line) {
        log::room("host").info("[{}] stderr: {}", backend, line);
      },
      scrubber_);
  asio::co_spawn(core_, read_errors(shared_from_this()), fatal);
  return {};
}

Task<void> WorkerRun::read_errors(std::shared_ptr<WorkerRun> self) {
  auto* pipe = self->worker_ ? self->worker_->errors() : nullptr;
  if (pipe == nullptr) co_return;
  std::string buffer(kErrorsBuffer, '\0');
  for (;;) {
    boost::system::error_code failed;
    const std::size_t got =
        co_await pipe->async_read_some(asio::buffer(buffer), asio::redirect_error(asio::use_awaitable, failed));
    if (failed || !self->errors_) co_return;
    self->errors_->feed({buffer.data(), got}, std::chrono::steady_clock::now());
  }
}

void WorkerRun::end() {
  if (errors_) {
    auto* pipe = worker_->errors();
    std::string buffer(kErrorsBuffer, '\0');
    boost::system::error_code ended;  // an empty pipe and a closed one make no difference here
    pipe->non_blocking(true, ended);
    const std::size_t got = pipe->read_some(asio::buffer(buffer), ended);
    const auto now = std::chrono::steady_clock::now();
    errors_->feed({buffer.data(), got}, now);
    errors_->finish(now);
    errors_.reset();
    pipe->close(ended);
  }
  worker_.reset();
  if (channel_) channel_->close();
  channel_.reset();
}

void WorkerRun::limit_files(int max) {
  if (worker_) worker_->limit_files(max);
}

void WorkerRun::ask_to_stop() {
  if (channel_) channel_->send(ipc::FrameType::stop, 0, {});
}

void WorkerRun::kill(std::string reason) {
  killed_ = true;
  explain_end(std::move(reason));
  if (worker_) worker_->kill();
  if (channel_) channel_->close();
}

void WorkerRun::explain_end(std::string reason) {
  if (end_reason_.empty()) end_reason_ = std::move(reason);
}

void WorkerRun::explain_hang() {
  end_reason_ += fmt::format(
      "{}its process {} was killed and does not end, most often for a file system that hangs; the next one starts when "
      "it has",
      end_reason_.empty() ? "" : "; ", pid());
}

}  // namespace driftd::host
