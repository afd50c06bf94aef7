// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cerrno>
#include <cstring>
#include <thread>

#include "host/worker.hpp"
#include "worker/provider_host.hpp"

namespace driftd::host {
namespace {

class Threads final : public Worker {
 public:
  Threads(int fd, int library)
      : host_(std::make_shared<worker::ProviderHost>(fd, library)),
        thread_(&Threads::serve, host_) {}
  ~Threads() override { leave(); }
  void kill() override { leave(); }
  /// Called after the socket ended, so serve() has returned, unless the worker was killed before.
  Task<std::string> reap() override {
    if (thread_.joinable()) thread_.join();
    co_return "ended";
  }

 private:
  static void serve(std::shared_ptr<worker::ProviderHost> host) {
    (void)host->serve();
  }  // the agent sees its end at the socket
  void leave() {
    if (thread_.joinable()) thread_.detach();
  }
  std::shared_ptr<worker::ProviderHost> host_;
  std::thread thread_;
};

}  // namespace

Result<StartedWorker> start_threads(asio::any_io_executor, int library) {
  int ends[2];
  const int own = ::fcntl(library, F_DUPFD_CLOEXEC, 3);
  if (own < 0)
    return fail(Code::unavailable, fmt::format("cannot start an in-process session: {}", std::strerror(errno)));
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    ::close(own);
    return fail(Code::unavailable, fmt::format("cannot start an in-process session: {}", std::strerror(errno)));
  }
  StartedWorker out;
  out.worker = std::make_unique<Threads>(ends[1], own);
  out.fd = ends[0];
  return out;
}

}  // namespace driftd::host
