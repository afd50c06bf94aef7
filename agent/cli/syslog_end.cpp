// SPDX-License-Identifier: Apache-2.0
// The end of a connection to a syslog server, from which one learns whether the server has read everything. Syslog has
// no acknowledgement, and the server's close_notify alone says nothing: a server that stops sends one, too, and then
// drops what is in its queue. What counts is the order of four events:
//   1. The server's kernel acknowledged all lines, and the server had not ended its side before.
//   2. The server's close_notify came after ours had arrived there.
//   3. Its TCP connection then ended in order. A kernel resets one that is closed with unread bytes in its queue.
//   4. Our end of TCP was acknowledged, so that no reset came after the server's end either.
// Our end of TCP goes last, because a kernel that has both ends sends no reset any more.
#include <fcntl.h>
#include <linux/sockios.h>
#include <openssl/err.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <algorithm>
#include <cerrno>
#include <thread>

#include "cli/syslog_stream.hpp"

namespace driftd::cli {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr const char* kStep = "waiting for the server's end, which says that it has read everything";
/// A server may wait for our end of TCP before it closes. After this time it gets it.
constexpr std::chrono::seconds kServersTurn{1};
/// A server that ends both directions before it closes sends its end first, and the reset with the next system call.
constexpr milliseconds kReset{10};
/// The kernel reports no acknowledgement, so one asks for it.
constexpr milliseconds kLongestPause{20};

/// Returns true if the socket is ready before the deadline.
bool ready(int fd, short events, steady_clock::time_point deadline) {
  const auto left = std::chrono::ceil<milliseconds>(deadline - steady_clock::now());
  pollfd on{fd, events, 0};
  return ::poll(&on, 1, static_cast<int>(std::max<milliseconds::rep>(left.count(), 0))) > 0;
}

bool would_block(int error) { return error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE; }

}  // namespace

Status SyslogStream::finish() {
  const Deadline deadline = steady_clock::now() + patience_;
  ::fcntl(socket_.get(), F_SETFL, ::fcntl(socket_.get(), F_GETFL) | O_NONBLOCK);
  DRIFTD_CHECK(await_arrival(deadline));
  DRIFTD_CHECK(end_ours(deadline));
  DRIFTD_CHECK(await_end(deadline));
  return await_close(deadline);
}

Status SyslogStream::await_arrival(Deadline deadline) {
  for (milliseconds pause{1};; pause = std::min(2 * pause, kLongestPause)) {
    const bool arrived = unacknowledged() == 0;  // first: what ended before the last acknowledgement is seen below
    const auto ended = read_end();
    if (!ended) return tl::unexpected(ended.error());
    if (*ended) return unread();
    if (arrived) return {};
    if (steady_clock::now() >= deadline) return fail(Code::unavailable, shown_ + ": sending: no answer in time");
    ready(socket_.get(), POLLIN, std::min(deadline, steady_clock::now() + pause));
  }
}

Status SyslogStream::end_ours(Deadline deadline) {
  for (;;) {
    ERR_clear_error();
    const int sent = SSL_shutdown(ssl_.get());
    if (sent >= 0) return {};
    if (!would_block(SSL_get_error(ssl_.get(), sent))) return fail(broken("closing", sent));
    if (!ready(socket_.get(), POLLOUT, deadline))
      return fail(Code::unavailable, shown_ + ": closing: no answer in time");
  }
}

/// Only the server's close_notify counts (RFC 5425 section 4.4): a bare end may come from anybody on the way. With
/// TLS 1.3 one may learn only here of a client certificate that was refused.
Status SyslogStream::await_end(Deadline deadline) {
  for (;;) {
    const auto ended = read_end();
    if (!ended) return tl::unexpected(ended.error());
    // A server that read our close_notify acknowledged it at the latest with its own.
    if (*ended) return unacknowledged() == 0 ? Status() : unread();
    const bool in_time = ready(socket_.get(), POLLIN, deadline) && steady_clock::now() < deadline;
    if (!in_time) return fail(Code::unavailable, shown_ + ": " + kStep + ": no answer in time");
  }
}

Status SyslogStream::await_close(Deadline deadline) {
  Deadline until = std::min(deadline, steady_clock::now() + kServersTurn);
  char ignored[512];
  bool ended = false;
  for (;;) {
    const ssize_t got = ::recv(socket_.get(), ignored, sizeof ignored, 0);
    if (got == 0) break;
    if (got < 0 && errno != EAGAIN && errno != EINTR) return unread();
    if (ready(socket_.get(), POLLIN, until) && steady_clock::now() < until) continue;
    if (ended) {
      return fail(Code::unavailable, shown_ + ": " + kStep +
                                         ": it answered our end and did not close the connection in time; expected a "
                                         "server that closes it (RFC 5425 section 4.4)");
    }
    ::shutdown(socket_.get(), SHUT_WR);
    ended = true;
    until = deadline;
  }
  if (!ended && ready(socket_.get(), 0, steady_clock::now() + kReset)) return unread();  // POLLERR and POLLHUP
  ::shutdown(socket_.get(), SHUT_WR);
  return await_last_arrival(deadline);
}

Status SyslogStream::await_last_arrival(Deadline deadline) const {
  for (milliseconds pause{1};; pause = std::min(2 * pause, kLongestPause)) {
    const bool arrived = unacknowledged() == 0;
    int error = 0;
    socklen_t size = sizeof error;
    ::getsockopt(socket_.get(), SOL_SOCKET, SO_ERROR, &error, &size);
    if (error != 0 || (!arrived && steady_clock::now() >= deadline)) return unread();
    if (arrived) return {};
    std::this_thread::sleep_for(pause);
  }
}

Result<bool> SyslogStream::read_end() {
  std::string ignored(16'384, '\0');
  for (int records = 0; records < 64; ++records) {  // a server that sends without an end may not keep us
    ERR_clear_error();
    const int got = SSL_read(ssl_.get(), ignored.data(), static_cast<int>(ignored.size()));
    if (got > 0) continue;
    const int error = SSL_get_error(ssl_.get(), got);
    if (would_block(error)) return false;
    if (error == SSL_ERROR_ZERO_RETURN) return true;
    return fail(broken(kStep, got));
  }
  return false;
}

int SyslogStream::unacknowledged() const {
  int out = 0;
  return ::ioctl(socket_.get(), SIOCOUTQ, &out) == 0 ? out : -1;
}

tl::unexpected<Error> SyslogStream::unread() const {
  return fail(Code::unavailable, shown_ + ": " + kStep +
                                     ": it ended the connection, as a server does that stops, and it is not certain "
                                     "that the server has read everything");
}

}  // namespace driftd::cli
