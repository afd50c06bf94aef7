// SPDX-License-Identifier: Apache-2.0
// The end of a connection, from which one learns whether the server has read everything. Syslog has no acknowledgement,
// and the server's end alone says nothing: a server that stops ends its side, too, and then drops what is in its queue.
// What counts is the order of events:
//   1. The server's kernel acknowledged all messages, and the server had not ended its side before.
//   2. The server's end (over TLS its close_notify) came after ours had arrived there.
//   3. Its TCP connection ended in order. A kernel resets one that is closed with unread bytes in its queue.
//   4. Over TLS our end of TCP goes last and was acknowledged, so that no reset came after the server's end either. A
//      kernel that has both ends sends none any more. Over plain TCP it is the only end that we have.
#include <linux/sockios.h>
#include <openssl/err.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <algorithm>
#include <cerrno>

#include "wire.hpp"

namespace syslog_sink {
namespace {

constexpr const char* kDoing = "waiting for the server to close, which it does when it has read everything";
// A server may wait for our end of TCP before it closes. After this time it gets it.
constexpr std::int64_t kServersTurnMs = 1'000;
// A server that ends both directions before it closes sends its end first, and the reset with the next system call.
constexpr std::int64_t kResetMs = 10;
// The kernel reports no acknowledgement, so one asks for it.
constexpr std::int64_t kLongestPauseMs = 20;

}  // namespace

void Stream::finish() {
  await_arrival();
  end_ours();
  await_end();
  if (endpoint_.tls) await_close();
}

void Stream::await_arrival() {
  const std::string what = endpoint_.shown() + ": sending";
  for (std::int64_t pause = 1;; pause = std::min(2 * pause, kLongestPauseMs)) {
    const bool arrived = unacknowledged() == 0;  // first: what ended before the last acknowledgement is seen below
    if (read_end()) unread();
    if (arrived) return;
    ready_within(call_, fd_.get(), POLLIN, std::min(pause, left_ms(call_, until_ns_, what)), what);
  }
}

void Stream::end_ours() {
  if (!endpoint_.tls) {
    ::shutdown(fd_.get(), SHUT_WR);
    return;
  }
  for (int sent = 0; (sent = SSL_shutdown(ssl_.get())) < 0;) wait_to_go_on(sent, POLLOUT, "closing");
}

void Stream::await_end() {
  const std::string what = endpoint_.shown() + ": " + kDoing;
  while (!read_end()) wait_for(call_, fd_.get(), POLLIN, until_ns_, what);
  if (unacknowledged() != 0) unread();  // a server that read our end acknowledged it at the latest with its own
}

void Stream::await_close() {
  const std::string what = endpoint_.shown() + ": " + kDoing;
  std::int64_t turn = kServersTurnMs;
  bool ended = false;
  for (char ignored[512];;) {
    const long got = ::recv(fd_.get(), ignored, sizeof ignored, 0);
    if (got == 0) break;
    if (got < 0 && errno != EAGAIN && errno != EINTR) unread();
    const std::int64_t left = left_ms(call_, until_ns_, what);
    if (got > 0 || ready_within(call_, fd_.get(), POLLIN, std::min(left, turn), what)) continue;
    ::shutdown(fd_.get(), SHUT_WR);
    ended = true;
    turn = left;
  }
  if (!ended && ready_within(call_, fd_.get(), 0, kResetMs, what)) unread();  // POLLERR and POLLHUP
  ::shutdown(fd_.get(), SHUT_WR);
  await_last_arrival();
}

void Stream::await_last_arrival() {
  const std::string what = endpoint_.shown() + ": " + kDoing;
  for (std::int64_t pause = 1;; pause = std::min(2 * pause, kLongestPauseMs)) {
    const bool arrived = unacknowledged() == 0;
    int error = 0;
    socklen_t size = sizeof error;
    ::getsockopt(fd_.get(), SOL_SOCKET, SO_ERROR, &error, &size);
    if (error != 0) unread();
    if (arrived) return;
    ready_within(call_, -1, 0, std::min(pause, left_ms(call_, until_ns_, what)), what);
  }
}

// Reads what is there. Returns true once the server has ended its side. Over TLS only its close_notify counts (RFC
// 5425, section 4.4): a bare end of the connection may come from anybody on the way, and with TLS 1.3 one may learn
// only here of a client certificate that was refused.
bool Stream::read_end() {
  std::string ignored(16'384, '\0');
  const int size = static_cast<int>(ignored.size());
  for (int records = 0; records < 64; ++records) {  // a server that sends without an end may not keep us
    ERR_clear_error();
    const long got = endpoint_.tls ? SSL_read(ssl_.get(), ignored.data(), size)
                                   : ::recv(fd_.get(), ignored.data(), ignored.size(), 0);
    if (got > 0) continue;
    const bool ended =
        endpoint_.tls ? SSL_get_error(ssl_.get(), static_cast<int>(got)) == SSL_ERROR_ZERO_RETURN : got == 0;
    if (ended) return true;
    awaited(got, POLLIN, kDoing);
    return false;
  }
  return false;
}

// Returns the bytes, our end of TCP among them, that the server's kernel has not acknowledged.
int Stream::unacknowledged() const {
  int out = 0;
  return ::ioctl(fd_.get(), SIOCOUTQ, &out) == 0 ? out : -1;
}

void Stream::unread() const {
  unavailable(endpoint_.shown() + ": " + kDoing +
              ": it ended the connection, as a server does that stops, and it is not certain that the server has read "
              "everything");
}

}  // namespace syslog_sink
