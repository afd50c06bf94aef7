/* SPDX-License-Identifier: Apache-2.0 */
/* These are wrong about threads, handles or the state of the whole process. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base.h"

#define DELIVER driftd_status faulty_deliver(driftd_instance self, driftd_call call, const driftd_batch* batch)
#define SEND int faulty_send(base_sink* self, driftd_call call, int fd, const driftd_event* event)

#if defined(FAULTY_shared_buffer)
static char shared[4096]; /* the body, shared by all calls */
SEND {
  driftd_event copied = *event;
  if (event->body.len > sizeof shared) return base_send(self, call, fd, event);
  memcpy(shared, event->body.data, event->body.len);
  base_host.cancelled(call); /* another call may come in between */
  copied.body.data = shared;
  return base_send(self, call, fd, &copied);
}

#elif defined(FAULTY_one_instance)
static int logged_in; /* by any instance */
driftd_status faulty_open(driftd_call call, const driftd_sink_open_args* args, driftd_instance* out) {
  logged_in = 1;
  return base_open(call, args, out);
}
DELIVER {
  if (!logged_in) return base_fail(call, DRIFTD_UNAUTHENTICATED, "the connection was closed");
  return base_deliver(self, call, batch);
}
void faulty_close(driftd_instance self) {
  logged_in = 0;
  base_close(self);
}

#elif defined(FAULTY_foreign_thread)
static void* log_from_here(void* call) {
  base_host.log(*(driftd_call*)call, DRIFTD_LOG_INFO, base_str("from a thread of my own"), NULL, 0);
  return NULL;
}
DELIVER {
  pthread_t thread;
  if (pthread_create(&thread, NULL, log_from_here, &call) != 0)
    return base_fail(call, DRIFTD_UNAVAILABLE, "no thread can be started");
  pthread_join(thread, NULL);
  return base_deliver(self, call, batch);
}

#elif defined(FAULTY_settles_late) /* settles once more, for a call that has ended */
static driftd_call last;
DELIVER {
  if (last != 0) base_settle(last, 0, DRIFTD_OUTCOME_DELIVERED, "");
  last = call;
  return base_deliver(self, call, batch);
}

#elif defined(FAULTY_changes_mask)
DELIVER {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR1);
  pthread_sigmask(SIG_BLOCK, &set, NULL);
  return base_deliver(self, call, batch);
}

#elif defined(FAULTY_prints_stdout)
DELIVER {
  printf("delivering %u events\n", batch->event_count);
  fflush(stdout);
  return base_deliver(self, call, batch);
}
#endif
