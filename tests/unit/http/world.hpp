// SPDX-License-Identifier: Apache-2.0
// A call without a host, and a server to talk to.
#pragma once

#include <fcntl.h>
#include <unistd.h>
#include <atomic>
#include <chrono>
#include <string>
#include <vector>

#include "driftd/sdk/call.hpp"
#include "support/process.hpp"

namespace driftd::http::testing {

using std::chrono::milliseconds;

/// The host's side of one call; its address is the handle.
struct Hosted {
  std::chrono::steady_clock::time_point deadline;
  std::atomic<bool> cancelled{false};
  int pipe[2] = {-1, -1};

  explicit Hosted(milliseconds most = milliseconds(20'000)) : deadline(std::chrono::steady_clock::now() + most) {
    if (::pipe2(pipe, O_CLOEXEC | O_NONBLOCK) != 0) throw std::runtime_error("pipe");
    sdk::host = &table();
  }
  ~Hosted() {
    ::close(pipe[0]);
    ::close(pipe[1]);
  }
  driftd_call handle() { return reinterpret_cast<driftd_call>(this); }
  void cancel() {
    cancelled = true;
    (void)!::write(pipe[1], "x", 1);
  }

  static Hosted& of(driftd_call call) { return *reinterpret_cast<Hosted*>(call); }
  static const driftd_host_table& table() {
    static const driftd_host_table kTable = [] {
      driftd_host_table out{};
      out.size = sizeof out;
      out.now = [] { return std::int64_t{42}; };
      out.cancelled = [](driftd_call c) { return of(c).cancelled ? 1 : 0; };
      out.deadline = [](driftd_call c) { return std::int64_t{of(c).deadline.time_since_epoch().count()}; };
      out.cancel_fd = [](driftd_call c) { return of(c).pipe[0]; };
      return out;
    }();
    return kTable;
  }
};

/// server.py on a free port, plain or with TLS.
class Server {
 public:
  /// `tls`: certificate, key and perhaps the clients' CA.
  explicit Server(const std::vector<std::string>& tls = {});
  std::string url(const std::string& path, const std::string& host = "127.0.0.1") const;
  int port() const { return port_; }

 private:
  test::TempDir dir_;
  int port_;
  bool tls_;
  test::Child child_;
};

/// A CA, a certificate that it signed for `localhost` (not for 127.0.0.1), and another CA.
class Certificates {
 public:
  Certificates();
  std::string file(const std::string& name) const { return dir_.file(name); }
  std::string text(const std::string& name) const { return test::read_file(dir_.file(name)); }

 private:
  test::TempDir dir_;
};

}  // namespace driftd::http::testing
