/* SPDX-License-Identifier: Apache-2.0 */
/* These do not return in time. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base.h"

#define REFRESH                                                                                         \
  driftd_status faulty_refresh(driftd_instance self, driftd_call call, const driftd_refresh_args* args, \
                               driftd_refresh_result* result)

enum { kNobody = 0 }; /* base_wait(kNobody, …) ignores a cancel */

#if defined(FAULTY_ignores_deadline) /* it retries without end, whatever the deadline */
REFRESH {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  if (base_host.deadline(call) / 1000000000 <= now.tv_sec) base_wait(kNobody, 60000);
  return base_refresh(self, call, args, result);
}

#elif defined(FAULTY_hangs)
REFRESH {
  (void)self, (void)call, (void)args, (void)result;
  for (;;) base_wait(kNobody, -1);
}

#elif defined(FAULTY_slow_drip) /* emits a record each second, without end */
REFRESH {
  (void)self, (void)args, (void)result;
  for (unsigned n = 0;; ++n) {
    char id[32];
    snprintf(id, sizeof id, "drop-%u", n);
    const driftd_record drop = {.size = sizeof drop,
                                .schema_revision = 1,
                                .kind = base_str("role"),
                                .id = base_str(id),
                                .body = base_str("{\"login\":true}"),
                                .observed_ns = base_host.now()};
    base_host.emit(call, &drop, 1, sizeof drop);
    base_wait(kNobody, 1000);
  }
}

#elif defined(FAULTY_stuck_after_cancel)
static int stuck;
REFRESH {
  if (stuck) return base_fail(call, DRIFTD_INTERNAL, "the connection is still in use by the cancelled call");
  const driftd_status status = base_refresh(self, call, args, result);
  stuck = base_host.cancelled(call);
  return status;
}

#elif defined(FAULTY_deaf_watch)
driftd_status faulty_watch(driftd_instance self, driftd_call call, const driftd_watch_args* args) {
  (void)self, (void)call, (void)args;
  for (;;) base_wait(kNobody, -1);
}

#elif defined(FAULTY_blocks_in_wake)
void faulty_wake(driftd_instance self) {
  base_wait(kNobody, 3000);
  base_wake(self);
}

#elif defined(FAULTY_black_hole) /* blocks in connect and read without a time limit */
driftd_status faulty_schema(driftd_str what, driftd_push_fn push, void* user) {
  if (!base_is(what, "settings")) return base_schema(what, push, user);
  return base_push(push, user,
                   "{\"type\":\"object\",\"additionalProperties\":false,\"properties\":{"
                   "\"address\":{\"type\":\"string\",\"description\":\"host:port\"}}}");
}
static int parse(const char* text, struct sockaddr_in* peer) {
  char host[64];
  unsigned short port;
  memset(peer, 0, sizeof *peer);
  if (sscanf(text, "%63[0-9.]:%hu", host, &port) != 2) return 0;
  peer->sin_family = AF_INET;
  peer->sin_port = htons(port);
  return inet_pton(AF_INET, host, &peer->sin_addr) == 1;
}
driftd_status faulty_open(driftd_call call, const driftd_open_args* args, driftd_instance* out) {
  driftd_str given = {NULL, 0};
  struct sockaddr_in peer;
  char text[64] = {0};
  if (base_setting(args->settings, "address", &given) && given.len < sizeof text) memcpy(text, given.data, given.len);
  if (given.len > 0 && !parse(text, &peer))
    return base_fail(call, DRIFTD_INVALID, "settings.address: expected an IPv4 address and a port");
  const driftd_status status = base_open(call, args, out);
  if (status == DRIFTD_OK) memcpy(((base_instance*)*out)->note, text, sizeof text);
  return status;
}
static driftd_status greeted(const base_instance* self, driftd_call call) {
  char greeting;
  struct sockaddr_in peer;
  if (!parse(self->note, &peer)) return DRIFTD_OK;
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int up = fd >= 0 && connect(fd, (void*)&peer, sizeof peer) == 0 && read(fd, &greeting, 1) == 1;
  close(fd);
  return up ? DRIFTD_OK : base_fail(call, DRIFTD_UNAVAILABLE, "the peer hung up");
}
REFRESH {
  const driftd_status status = greeted(self, call);
  return status == DRIFTD_OK ? base_refresh(self, call, args, result) : status;
}

#elif defined(FAULTY_slow_health)
driftd_status faulty_health(driftd_instance self, driftd_call call, driftd_health_fn push, void* user) {
  base_wait(kNobody, 5000);
  return base_health(self, call, push, user);
}

#elif defined(FAULTY_blocks_in_close)
void faulty_close(driftd_instance self) {
  base_close(self);
  for (;;) base_wait(kNobody, -1);
}
#endif
