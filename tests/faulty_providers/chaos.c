/* SPDX-License-Identifier: Apache-2.0 */
/* These work only under good conditions. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base.h"

#define REFRESH                                                                                         \
  driftd_status faulty_refresh(driftd_instance self, driftd_call call, const driftd_refresh_args* args, \
                               driftd_refresh_result* result)

#if defined(FAULTY_lock_file) /* a process that dies leaves it locked */
static char path[64];
static int holders; /* instances of this process */
driftd_status faulty_open(driftd_call call, const driftd_open_args* args, driftd_instance* out) {
  snprintf(path, sizeof path, "/tmp/driftd-faulty-lock-%d", (int)getppid());
  const int fd = holders > 0 ? -1 : open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
  if (holders == 0 && fd < 0)
    return base_fail(call, DRIFTD_CONFLICT, "another process holds the lock; remove its file in /tmp");
  if (fd >= 0) close(fd);
  const driftd_status status = base_open(call, args, out);
  holders += status == DRIFTD_OK;
  if (holders == 0) unlink(path);
  return status;
}
void faulty_close(driftd_instance self) {
  if (--holders == 0) unlink(path);
  base_close(self);
}

#elif defined(FAULTY_runs_programs)
REFRESH {
  char program[] = "/bin/true";
  char* argv[] = {program, NULL};
  char* environment[] = {NULL};
  pid_t pid = -1;
  int status = -1;
  if (posix_spawn(&pid, program, NULL, NULL, argv, environment) != 0 || waitpid(pid, &status, 0) != pid || status != 0)
    return base_fail(call, DRIFTD_UNAVAILABLE, "cannot run /bin/true");
  return base_refresh(self, call, args, result);
}

#elif defined(FAULTY_forks)
REFRESH {
  int status = -1;
  const pid_t pid = fork();
  if (pid == 0) _exit(0);
  if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
    return base_fail(call, DRIFTD_UNAVAILABLE, "cannot start the process that does the work");
  return base_refresh(self, call, args, result);
}

#elif defined(FAULTY_daemonizes) /* the daemon outlives its host */
REFRESH {
  const pid_t pid = fork();
  if (pid == 0) {
    setsid();
    poll(NULL, 0, 60000);
    _exit(0);
  }
  while (pid > 0 && getsid(pid) != pid) sched_yield();
  return base_refresh(self, call, args, result);
}

#elif defined(FAULTY_fork_bomb) /* goes off only where a seccomp filter is active: elsewhere it would take the machine \
                                down */
REFRESH {
  (void)self, (void)args, (void)result;
  if (prctl(PR_GET_SECCOMP) != 2) return base_fail(call, DRIFTD_UNSUPPORTED, "no filter is active: not here");
  while (fork() >= 0) continue;
  return base_fail(call, DRIFTD_UNAVAILABLE, strerror(errno));
}

#elif defined(FAULTY_third_time_unlucky)
REFRESH {
  static int times;
  if (++times == 3) abort();
  return base_refresh(self, call, args, result);
}

#elif defined(FAULTY_clock_fears)
void faulty_record(base_instance* self, driftd_record* record, char* body) {
  static int64_t last;
  (void)self, (void)body;
  if (record->observed_ns < last) abort();
  last = record->observed_ns;
}

#elif defined(FAULTY_descriptor_blind)
REFRESH {
  FILE* volatile file = fdopen(eventfd(0, EFD_CLOEXEC), "r");
  setvbuf(file, NULL, _IONBF, 0);
  fclose(file);
  return base_refresh(self, call, args, result);
}
#endif
