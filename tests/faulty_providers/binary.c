/* SPDX-License-Identifier: Apache-2.0 */
/* These are wrong before the first call. textrel, exec_stack, rpath and no_relro differ in how they are linked, see
 * CMakeLists.
 */
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "base.h"

#define AT_LOAD __attribute__((constructor)) static void at_load(void)

#if defined(FAULTY_constructor_exits)
AT_LOAD { _exit(7); }

#elif defined(FAULTY_undefined_symbol)
extern void nobody_defines_this(void);
void faulty_close(driftd_instance self) {
  base_close(self);
  nobody_defines_this();
}

#elif defined(FAULTY_missing_symbol) /* its version script hides driftd_provider_v1 */
DRIFTD_EXPORT driftd_status driftd_provider_v9(const driftd_host_table* host, const driftd_offer* offer,
                                               driftd_accept* out);
driftd_status driftd_provider_v9(const driftd_host_table* host, const driftd_offer* offer, driftd_accept* out) {
  return base_entry(host, offer, out);
}

#elif defined(FAULTY_two_symbols) /* its version script exports another one */
DRIFTD_EXPORT int second_symbol(void);
int second_symbol(void) { return 2; }

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
