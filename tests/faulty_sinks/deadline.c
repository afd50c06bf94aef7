/* SPDX-License-Identifier: Apache-2.0 */
/* These do not return when they must. */
#include <poll.h>
#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include "base.h"

#define DELIVER driftd_status faulty_deliver(driftd_instance self, driftd_call call, const driftd_batch* batch)
#define SEND int faulty_send(base_sink* self, driftd_call call, int fd, const driftd_event* event)

#if defined(FAULTY_ignores_deadline) /* works for ten seconds, whatever the deadline was */
DELIVER {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  if (base_host.deadline(call) / 1000000000 >= now.tv_sec) return base_deliver(self, call, batch);
  poll(NULL, 0, 10000);
  return base_deliver(self, call, batch);
}

#elif defined(FAULTY_hangs) /* when it is cancelled before its start */
DELIVER {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  const int early = base_host.deadline(call) / 1000000000 > now.tv_sec && base_host.cancelled(call);
  if (early) poll(NULL, 0, -1);
  return base_deliver(self, call, batch);
}

#elif defined(FAULTY_stuck_after_cancel) /* a call that was cancelled while it sent leaves the sink locked */
static pthread_mutex_t sending = PTHREAD_MUTEX_INITIALIZER;
SEND {
  struct timespec soon;
  clock_gettime(CLOCK_REALTIME, &soon);
  soon.tv_sec += 1;
  if (pthread_mutex_timedlock(&sending, &soon) != 0) return kGone;
  const int sent = base_send(self, call, fd, event);
  if (sent != kOver) pthread_mutex_unlock(&sending);
  return sent;
}

#elif defined(FAULTY_blocks_in_wake)
void faulty_wake(driftd_instance self) {
  poll(NULL, 0, 20);
  base_wake(self);
}

#elif defined(FAULTY_black_hole) /* waits for its peer and for nothing else */
SEND {
  int sent = base_write_line(0, fd, event);
  if (sent == 0) sent = base_answer(call, fd, 10000);
  (void)self;
  return sent;
}

#elif defined(FAULTY_blocks_in_close)
void faulty_close(driftd_instance self) {
  poll(NULL, 0, 4000);
  base_close(self);
}

#elif defined(FAULTY_slow_probe)
driftd_status faulty_probe(driftd_instance self, driftd_call call, driftd_health_fn push, void* user) {
  base_wait(call, -1, 0, 1200);
  poll(NULL, 0, 1200);
  return base_probe(self, call, push, user);
}

#elif defined(FAULTY_patient_probe) /* waits for its peer as long as for any other call */
driftd_status faulty_probe(driftd_instance self, driftd_call call, driftd_health_fn push, void* user) {
  const int fd = base_connect(((base_sink*)self)->port, 0, 1800);
  if (fd >= 0) close(fd);
  return base_probe(self, call, push, user);
}

#elif defined(FAULTY_optimist)
driftd_status faulty_probe(driftd_instance self, driftd_call call, driftd_health_fn push, void* user) {
  (void)self, (void)call;
  const driftd_health health = {.size = sizeof health, .state = DRIFTD_HEALTH_UP};
  push(user, &health);
  return DRIFTD_OK;
}
#endif
