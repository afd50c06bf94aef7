/* SPDX-License-Identifier: Apache-2.0 */
/* Does not return when it must. */
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
  driftd_status animal_refresh(driftd_instance self, driftd_call call, const driftd_refresh_args* args, \
                               driftd_refresh_result* result)

enum { kNobody = 0 }; /* zoo_wait(kNobody, …) heeds no cancel */

#if defined(ZOO_ignores_deadline) /* it tries again and again, whatever the time */
REFRESH {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  if (zoo_host.deadline(call) / 1000000000 <= now.tv_sec) zoo_wait(kNobody, 60000);
  return base_refresh(self, call, args, result);
}

#elif defined(ZOO_hangs)
REFRESH {
  (void)self, (void)call, (void)args, (void)result;
  for (;;) zoo_wait(kNobody, -1);
}

#elif defined(ZOO_slow_drip) /* a record each second, for ever */
REFRESH {
  (void)self, (void)args, (void)result;
  for (unsigned n = 0;; ++n) {
    char id[32];
    snprintf(id, sizeof id, "drop-%u", n);
    const driftd_record drop = {.size = sizeof drop,
                                .schema_revision = 1,
                                .kind = zoo_str("role"),
                                .id = zoo_str(id),
                                .body = zoo_str("{\"login\":true}"),
                                .observed_ns = zoo_host.now()};
    zoo_host.emit(call, &drop, 1, sizeof drop);
    zoo_wait(kNobody, 1000);
  }
}

#elif defined(ZOO_stuck_after_cancel)
static int stuck;
REFRESH {
  if (stuck) return zoo_fail(call, DRIFTD_INTERNAL, "the connection is still in use by the cancelled call");
  const driftd_status status = base_refresh(self, call, args, result);
  stuck = zoo_host.cancelled(call);
  return status;
}

#elif defined(ZOO_deaf_watch)
driftd_status animal_watch(driftd_instance self, driftd_call call, const driftd_watch_args* args) {
  (void)self, (void)call, (void)args;
  for (;;) zoo_wait(kNobody, -1);
}

#elif defined(ZOO_blocks_in_wake)
void animal_wake(driftd_instance self) {
  zoo_wait(kNobody, 3000);
  base_wake(self);
}

#elif defined(ZOO_black_hole) /* blocks in connect and read, without a limit of time */
driftd_status animal_schema(driftd_str what, driftd_push_fn push, void* user) {
  if (!zoo_is(what, "settings")) return base_schema(what, push, user);
  return zoo_push(push, user,
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
driftd_status animal_open(driftd_call call, const driftd_open_args* args, driftd_instance* out) {
  driftd_str given = {NULL, 0};
  struct sockaddr_in peer;
  char text[64] = {0};
  if (zoo_setting(args->settings, "address", &given) && given.len < sizeof text) memcpy(text, given.data, given.len);
  if (given.len > 0 && !parse(text, &peer))
    return zoo_fail(call, DRIFTD_INVALID, "settings.address: expected an IPv4 address and a port");
  const driftd_status status = base_open(call, args, out);
  if (status == DRIFTD_OK) memcpy(((zoo_instance*)*out)->note, text, sizeof text);
  return status;
}
static driftd_status greeted(const zoo_instance* self, driftd_call call) {
  char greeting;
  struct sockaddr_in peer;
  if (!parse(self->note, &peer)) return DRIFTD_OK;
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int up = fd >= 0 && connect(fd, (void*)&peer, sizeof peer) == 0 && read(fd, &greeting, 1) == 1;
  close(fd);
  return up ? DRIFTD_OK : zoo_fail(call, DRIFTD_UNAVAILABLE, "the peer hung up");
}
REFRESH {
  const driftd_status status = greeted(self, call);
  return status == DRIFTD_OK ? base_refresh(self, call, args, result) : status;
}

#elif defined(ZOO_slow_health)
driftd_status animal_health(driftd_instance self, driftd_call call, driftd_health_fn push, void* user) {
  zoo_wait(kNobody, 5000);
  return base_health(self, call, push, user);
}

#elif defined(ZOO_blocks_in_close)
void animal_close(driftd_instance self) {
  base_close(self);
  for (;;) zoo_wait(kNobody, -1);
}
#endif
