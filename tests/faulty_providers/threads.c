/* SPDX-License-Identifier: Apache-2.0 */
/* These are wrong about threads, handles or the state of the whole process. */
#include <fcntl.h>
#include <locale.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base.h"

#define REFRESH                                                                                         \
  driftd_status faulty_refresh(driftd_instance self, driftd_call call, const driftd_refresh_args* args, \
                               driftd_refresh_result* result)

#if defined(FAULTY_shared_buffer)
static char shared[kBody]; /* shared by all calls */
void faulty_record(base_instance* self, driftd_record* record, char* body) {
  (void)self;
  if (!base_is(record->kind, "topic")) return;
  memcpy(shared, record->id.data, record->id.len);
  poll(NULL, 0, 1);
  snprintf(body, kBody, "{\"owner\":\"%.*s\"}", (int)record->id.len, shared);
  record->body = base_str(body);
}

#elif defined(FAULTY_one_instance)
static int logged_in; /* by any instance */
driftd_status faulty_open(driftd_call call, const driftd_open_args* args, driftd_instance* out) {
  logged_in = 1;
  return base_open(call, args, out);
}
REFRESH {
  if (!logged_in) return base_fail(call, DRIFTD_UNAUTHENTICATED, "the connection was closed");
  return base_refresh(self, call, args, result);
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
REFRESH {
  pthread_t thread;
  if (pthread_create(&thread, NULL, log_from_here, &call) != 0)
    return base_fail(call, DRIFTD_UNAVAILABLE, "no thread can be started");
  pthread_join(thread, NULL);
  return base_refresh(self, call, args, result);
}

#elif defined(FAULTY_emits_after_return)
static driftd_call last; /* a call that has ended */
static void emit_late(void) {
  const driftd_record record = {.size = sizeof record,
                                .schema_revision = 1,
                                .kind = base_str("role"),
                                .id = base_str("late"),
                                .body = base_str("{\"login\":false}"),
                                .observed_ns = base_host.now()};
  if (last != 0) base_host.emit(last, &record, 1, sizeof record);
}
REFRESH {
  emit_late();
  last = call;
  return base_refresh(self, call, args, result);
}
driftd_status faulty_health(driftd_instance self, driftd_call call, driftd_health_fn push, void* user) {
  emit_late();
  return base_health(self, call, push, user);
}
void faulty_close(driftd_instance self) {
  emit_late();
  base_close(self);
}

#elif defined(FAULTY_changes_mask)
REFRESH {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR1);
  pthread_sigmask(SIG_BLOCK, &set, NULL);
  return base_refresh(self, call, args, result);
}

#elif defined(FAULTY_changes_handlers)
REFRESH {
  signal(SIGPIPE, SIG_DFL);
  signal(SIGUSR2, SIG_IGN);
  return base_refresh(self, call, args, result);
}

#elif defined(FAULTY_broken_pipe) /* sound: a peer closed the connection while a TLS library wrote to it */
REFRESH {
  int ends[2];
  if (pipe(ends) != 0) return DRIFTD_INTERNAL;
  close(ends[0]);
  const ssize_t written = write(ends[1], "x", 1);
  close(ends[1]);
  return written == -1 ? base_refresh(self, call, args, result) : DRIFTD_INTERNAL;
}

#elif defined(FAULTY_changes_locale)
REFRESH {
  setlocale(LC_ALL, "C.UTF-8");
  return base_refresh(self, call, args, result);
}

#elif defined(FAULTY_changes_folder)
REFRESH {
  if (chdir("/usr") != 0) return base_fail(call, DRIFTD_UNAVAILABLE, "there is no /usr");
  return base_refresh(self, call, args, result);
}

#elif defined(FAULTY_closes_std)
REFRESH {
  for (int fd = 0; fd <= 2; ++fd) close(fd);
  return base_refresh(self, call, args, result);
}

#elif defined(FAULTY_prints_stdout)
REFRESH {
  printf("refreshing\n");
  fflush(stdout);
  return base_refresh(self, call, args, result);
}

#elif defined(FAULTY_shouts) /* writes 100 MB to stderr */
REFRESH {
  char line[100];
  memset(line, 'x', sizeof line - 1);
  line[sizeof line - 1] = 0;
  for (int i = 0; i < 1000000; ++i) fprintf(stderr, "%s\n", line);
  return base_refresh(self, call, args, result);
}

#elif defined(FAULTY_garbage) /* writes to every descriptor that is not its own */
REFRESH {
  for (int fd = 3; fd < 32; ++fd)
    if (fcntl(fd, F_GETFD) >= 0) (void)!write(fd, "this is no frame, is it? not at all", 35);
  while (!base_host.cancelled(call)) base_wait(call, 1000);
  return base_refresh(self, call, args, result);
}
#endif
