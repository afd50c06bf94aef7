/* SPDX-License-Identifier: Apache-2.0 */
/* These say of an event what is not true, or too much or too little. */
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base.h"

#define DELIVER driftd_status faulty_deliver(driftd_instance self, driftd_call call, const driftd_batch* batch)
#define SETTLE void faulty_settle(driftd_call call, uint32_t index, uint32_t outcome, const char* detail)
#define SEND int faulty_send(base_sink* self, driftd_call call, int fd, const driftd_event* event)

__attribute__((unused)) static void settle_all(driftd_call call, const driftd_batch* batch, uint32_t outcome,
                                               const char* detail) {
  for (uint32_t i = 0; i < batch->event_count; ++i) base_settle(call, i, outcome, detail);
}

#if defined(FAULTY_never_settles)
SETTLE { (void)call, (void)index, (void)outcome, (void)detail; }

#elif defined(FAULTY_segfault)
SEND {
  (void)self, (void)call, (void)fd, (void)event;
  int* volatile nowhere = NULL;
  return *nowhere;
}

#elif defined(FAULTY_forgets_last) /* of a batch of more than eight */
DELIVER {
  driftd_batch fewer = *batch;
  if (fewer.event_count > 8) fewer.event_count -= 1;
  return base_deliver(self, call, &fewer);
}

#elif defined(FAULTY_counts_from_one)
DELIVER {
  const driftd_status status = base_deliver(self, call, batch);
  base_settle(call, batch->event_count, DRIFTD_OUTCOME_DELIVERED, "");
  return status;
}

#elif defined(FAULTY_settles_twice)
SETTLE {
  base_settle(call, index, outcome, detail);
  base_settle(call, index, DRIFTD_OUTCOME_RETRY_EVENT, "to be sure");
}

#elif defined(FAULTY_mute)
SETTLE {
  (void)detail;
  base_settle(call, index, outcome, "");
}

#elif defined(FAULTY_sends_nothing) /* keeps one event of each large batch to itself */
SEND {
  static unsigned sent;
  if (++sent % 40 == 0) return 0;
  return base_send(self, call, fd, event);
}

#elif defined(FAULTY_queues) /* settles at once, and sends from a thread of its own a moment later */
typedef struct queued {
  int port;
  uint32_t count;
  size_t len;
  char lines[];
} queued;
static void* send_later(void* given) {
  queued* batch = given;
  poll(NULL, 0, 100);
  const int fd = base_connect(batch->port, 0, 1000);
  if (fd >= 0 && base_write(0, fd, batch->lines, batch->len) == 0) {
    for (uint32_t i = 0; i < batch->count && base_answer(0, fd, 1000) == 0; ++i) continue;
  }
  if (fd >= 0) close(fd);
  free(batch);
  return NULL;
}
DELIVER {
  size_t len = 0;
  for (uint32_t i = 0; i < batch->event_count; ++i)
    len += base_event(batch, i)->id.len + base_event(batch, i)->body.len + 2;
  queued* copy = malloc(sizeof *copy + len);
  if (copy == NULL) return base_fail(call, DRIFTD_INTERNAL, "out of memory");
  *copy = (queued){((base_sink*)self)->port, batch->event_count, 0};
  for (uint32_t i = 0; i < batch->event_count; ++i) {
    const driftd_event* event = base_event(batch, i);
    memcpy(copy->lines + copy->len, event->id.data, event->id.len);
    copy->len += event->id.len;
    copy->lines[copy->len++] = ' ';
    memcpy(copy->lines + copy->len, event->body.data, event->body.len);
    copy->len += event->body.len;
    copy->lines[copy->len++] = '\n';
  }
  pthread_t thread;
  if (pthread_create(&thread, NULL, send_later, copy) != 0) {
    free(copy);
    return base_fail(call, DRIFTD_UNAVAILABLE, "no thread can be started");
  }
  pthread_detach(thread);
  settle_all(call, batch, DRIFTD_OUTCOME_DELIVERED, "");
  return DRIFTD_OK;
}

#elif defined(FAULTY_gives_up) /* an endpoint that is down makes dead letters */
DELIVER {
  const int fd = base_connect(((base_sink*)self)->port, call, 700);
  if (fd == kGone) settle_all(call, batch, DRIFTD_OUTCOME_PERMANENT, "no connection");
  if (fd >= 0) close(fd);
  return fd == kGone ? DRIFTD_OK : base_deliver(self, call, batch);
}

#elif defined(FAULTY_settles_first) /* when the kernel or a queue has it, it counts as delivered */
DELIVER {
  const int64_t large = base_event(batch, 0)->body.len > 500000;
  const int fd = large ? base_connect(((base_sink*)self)->port, call, 700) : kGone;
  if (fd < 0) return base_deliver(self, call, batch);
  settle_all(call, batch, DRIFTD_OUTCOME_DELIVERED, "");
  for (uint32_t i = 0; i < batch->event_count; ++i)
    if (base_write_line(call, fd, base_event(batch, i)) == 0) (void)base_answer(call, fd, 10000);
  close(fd);
  return DRIFTD_OK;
}

#elif defined(FAULTY_impatient) /* takes silence for consent */
SEND {
  (void)self;
  const int sent = base_write_line(call, fd, event);
  if (sent != 0) return sent;
  return base_wait(call, fd, 1 /* POLLIN */, 200) == kGone ? 0 : base_answer(call, fd, 10000);
}

#elif defined(FAULTY_ignores_reset) /* what was written before the connection broke counts as delivered */
SEND {
  (void)self;
  const int sent = base_write_line(call, fd, event);
  if (sent != 0) return sent == kGone ? 0 : sent;
  const int answered = base_answer(call, fd, 10000);
  return answered == kGone ? 0 : answered;
}

#elif defined(FAULTY_late) /* what failed is sent again by itself, after the next two events */
static char* failed;
static size_t failed_len;
static int successes;
SEND {
  const int sent = base_send(self, call, fd, event);
  if (sent == kGone && failed == NULL) {
    failed = malloc(event->id.len + 1);
    memcpy(failed, event->id.data, event->id.len);
    failed[event->id.len] = '\n';
    failed_len = event->id.len + 1;
    successes = 0;
  }
  if (sent == 0 && failed != NULL && ++successes > 8) {
    if (base_write(call, fd, failed, failed_len) == 0) (void)base_answer(call, fd, 10000);
    free(failed);
    failed = NULL;
  }
  return sent;
}
#endif
