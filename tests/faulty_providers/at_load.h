/* SPDX-License-Identifier: Apache-2.0 */
/* What is wrong before the first call of a plugin of any kind. Included once, by binary.c of providers and of sinks. */
#ifndef DRIFTD_FAULTY_PROVIDERS_AT_LOAD_H
#define DRIFTD_FAULTY_PROVIDERS_AT_LOAD_H

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#define AT_LOAD __attribute__((constructor)) static void at_load(void)

#if defined(FAULTY_constructor_exits)
AT_LOAD { _exit(7); }

#elif defined(FAULTY_textrel)
__asm__(".text\n.quad base_name\n");

#elif defined(FAULTY_constructor_chdir)
AT_LOAD {
  if (chdir("/usr") != 0) abort();
}

#elif defined(FAULTY_constructor_signals)
AT_LOAD { signal(SIGUSR1, SIG_IGN); }

#elif defined(FAULTY_constructor_thread)
static void* idle(void* nothing) {
  poll(NULL, 0, -1);
  return nothing;
}
AT_LOAD {
  pthread_t thread;
  if (pthread_create(&thread, NULL, idle, NULL) != 0) abort();
}

#elif defined(FAULTY_forges_verdict) /* writes zeros to all descriptors: read as a verdict, they mean success */
AT_LOAD {
  static const char zeros[5];
  for (int fd = 3; fd < 1024; ++fd) (void)!write(fd, zeros, sizeof zeros);
  _exit(0);
}

#elif defined(FAULTY_slow_start)
AT_LOAD { poll(NULL, 0, 500); }
#endif

#endif /* DRIFTD_FAULTY_PROVIDERS_AT_LOAD_H */
