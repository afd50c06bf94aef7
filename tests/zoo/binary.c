/* SPDX-License-Identifier: Apache-2.0 */
/* Wrong before the first call. textrel, exec_stack, rpath and no_relro differ in how they are linked, see CMakeLists.
 */
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "base.h"

#define AT_LOAD __attribute__((constructor)) static void at_load(void)

#if defined(ZOO_constructor_exits)
AT_LOAD { _exit(7); }

#elif defined(ZOO_undefined_symbol)
extern void nobody_defines_this(void);
void animal_close(driftd_instance self) {
  base_close(self);
  nobody_defines_this();
}

#elif defined(ZOO_missing_symbol) /* its version script hides driftd_provider_v1 */
DRIFTD_EXPORT driftd_status driftd_provider_v9(const driftd_host_table* host, const driftd_offer* offer,
                                               driftd_accept* out);
driftd_status driftd_provider_v9(const driftd_host_table* host, const driftd_offer* offer, driftd_accept* out) {
  return base_entry(host, offer, out);
}

#elif defined(ZOO_two_symbols) /* its version script lets out another one */
DRIFTD_EXPORT int zoo_second_symbol(void);
int zoo_second_symbol(void) { return 2; }

#elif defined(ZOO_textrel)
__asm__(".text\n.quad zoo_name\n");

#elif defined(ZOO_constructor_chdir)
AT_LOAD {
  if (chdir("/usr") != 0) abort();
}

#elif defined(ZOO_constructor_signals)
AT_LOAD { signal(SIGUSR1, SIG_IGN); }

#elif defined(ZOO_constructor_thread)
static void* idle(void* nothing) {
  poll(NULL, 0, -1);
  return nothing;
}
AT_LOAD {
  pthread_t thread;
  if (pthread_create(&thread, NULL, idle, NULL) != 0) abort();
}

#elif defined(ZOO_forges_verdict) /* zeros everywhere: to a reader that trusts them they say that all is well */
AT_LOAD {
  static const char zeros[5];
  for (int fd = 3; fd < 1024; ++fd) (void)!write(fd, zeros, sizeof zeros);
  _exit(0);
}

#elif defined(ZOO_slow_start)
AT_LOAD { poll(NULL, 0, 500); }
#endif
