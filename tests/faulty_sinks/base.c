/* SPDX-License-Identifier: Apache-2.0 */
/* The sound sink's network and deliveries. Its table and settings are in base_table.c. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base.h"

static int64_t mono_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * INT64_C(1000) + now.tv_nsec / 1000000;
}

driftd_status base_may_go_on(driftd_call call) {
  if (base_host.cancelled(call) == 0) return DRIFTD_OK;
  if (mono_ms() >= base_host.deadline(call) / 1000000)
    return base_fail(call, DRIFTD_DEADLINE, "the deadline passed; give the call more time");
  return base_fail(call, DRIFTD_CANCELLED, "cancelled by the host");
}

int base_wait(driftd_call call, int fd, int events, int max_ms) {
  const int64_t until = mono_ms() + max_ms;
  for (;;) {
    int64_t left = until - mono_ms();
    if (call != 0) {
      if (base_host.cancelled(call)) return kOver;
      const int64_t call_left = base_host.deadline(call) / 1000000 - mono_ms();
      left = call_left < left ? call_left : left;
    }
    if (left <= 0) return call != 0 && base_host.cancelled(call) ? kOver : kGone;
    struct pollfd fds[2] = {{fd, (short)events, 0}, {call != 0 ? base_host.cancel_fd(call) : -1, POLLIN, 0}};
    if (poll(fds, 2, (int)left) > 0 && fds[0].revents != 0) return 0;
  }
}

int base_connect(int port, driftd_call call, int max_ms) {
  struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return kGone;
  const int on = 1; /* a line is written in pieces, and each is waited for */
  (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  int error = connect(fd, (struct sockaddr*)&at, sizeof at) == 0 ? 0 : errno;
  if (error == EINPROGRESS) {
    const int waited = base_wait(call, fd, POLLOUT, max_ms);
    socklen_t size = sizeof error;
    if (waited != 0 || getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0) {
      close(fd);
      return waited != 0 ? waited : kGone;
    }
  }
  if (error == 0) return fd;
  close(fd);
  return kGone;
}

int base_write(driftd_call call, int fd, const void* data, size_t len) {
  const char* at = data;
  while (len > 0) {
    const ssize_t n = send(fd, at, len, MSG_NOSIGNAL);
    if (n < 0 && errno != EAGAIN && errno != EINTR) return kGone;
    if (n > 0) {
      at += n;
      len -= (size_t)n;
      continue;
    }
    const int waited = base_wait(call, fd, POLLOUT, 10000);
    if (waited != 0) return waited;
  }
  return 0;
}

int base_write_line(driftd_call call, int fd, const driftd_event* event) {
  int sent = base_write(call, fd, event->id.data, event->id.len);
  if (sent == 0) sent = base_write(call, fd, " ", 1);
  if (sent == 0) sent = base_write(call, fd, event->body.data, event->body.len);
  return sent == 0 ? base_write(call, fd, "\n", 1) : sent;
}

int base_answer(driftd_call call, int fd, int max_ms) {
  for (;;) {
    char c = 0;
    const ssize_t n = recv(fd, &c, 1, 0);
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) return kGone;
    if (n == 1 && c == '\n') return 0;
    if (n == 1) continue;
    const int waited = base_wait(call, fd, POLLIN, max_ms);
    if (waited != 0) return waited;
  }
}

int base_send(base_sink* self, driftd_call call, int fd, const driftd_event* event) {
  (void)self;
  const int sent = base_write_line(call, fd, event);
  return sent != 0 ? sent : base_answer(call, fd, 10000);
}

void base_settle(driftd_call call, uint32_t index, uint32_t outcome, const char* detail) {
  const driftd_settlement one = {.size = sizeof one, .index = index, .outcome = outcome, .detail = base_str(detail)};
  base_host.settle(call, &one, 1, sizeof one);
}

const driftd_event* base_event(const driftd_batch* batch, uint32_t index) {
  return (const driftd_event*)(const void*)((const char*)batch->events + (size_t)index * batch->event_stride);
}

static void use(void* user, const uint8_t* data, uint64_t len) { *(uint64_t*)user = data != NULL ? len : 0; }

static driftd_status log_in(base_sink* self, driftd_call call) {
  uint64_t length = 0;
  if (self->token[0] == '\0') return DRIFTD_OK;
  if (base_host.secret(call, base_str(self->token), use, &length) == DRIFTD_OK) return DRIFTD_OK;
  return base_fail(call, DRIFTD_UNAUTHENTICATED, "settings.password: the host does not hand it out");
}

static driftd_status ended(driftd_call call, int how, const char* text) {
  const driftd_status over = how == kOver ? base_may_go_on(call) : DRIFTD_OK;
  return over != DRIFTD_OK ? over : base_fail(call, DRIFTD_UNAVAILABLE, text);
}

driftd_status base_deliver(driftd_instance given, driftd_call call, const driftd_batch* batch) {
  base_sink* self = given;
  driftd_status status = base_may_go_on(call);
  if (status == DRIFTD_OK) status = log_in(self, call);
  if (status != DRIFTD_OK) return status;
  const int fd = base_connect(self->port, call, 10000);
  if (fd < 0) return ended(call, fd, "no connection to the receiver; see settings.address");
  for (uint32_t i = 0; status == DRIFTD_OK && i < batch->event_count; ++i) {
    const driftd_event* event = base_event(batch, i);
    if (!base_is(event->content_type, DRIFTD_BODY_CLOUDEVENTS_JSON)) {
      faulty_settle(call, i, DRIFTD_OUTCOME_PERMANENT, "a content type that this sink does not know");
      continue;
    }
    const int sent = faulty_send(self, call, fd, event);
    if (sent == 0) faulty_settle(call, i, DRIFTD_OUTCOME_DELIVERED, "");
    if (sent != 0) status = ended(call, sent, "the receiver closed the connection or does not answer");
  }
  close(fd);
  return status;
}
