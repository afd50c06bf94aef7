/* SPDX-License-Identifier: Apache-2.0 */
/* These die in their first refresh, or never return from it. */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "base.h"

#if defined(FAULTY_segfault)
static void die(void) {
  volatile int* nowhere = NULL;
  signal(SIGSEGV, SIG_DFL); /* otherwise a sanitizer in the host would exit with a code */
  raise(SIGSEGV);
  *nowhere = 1;
}

#elif defined(FAULTY_abort)
static void die(void) { abort(); }

#elif defined(FAULTY_exits)
static void die(void) { _exit(0); }

#elif defined(FAULTY_stack_overflow)
static int dig(volatile char* above, int depth) {
  volatile char here[4096];
  here[0] = above[0];
  return depth == 0 ? here[0] : dig(here, depth - 1) + here[0];
}
static void die(void) {
  char top = 0;
  signal(SIGSEGV, SIG_DFL);
  while (dig(&top, 1 << 20) == 1) top = 0;
}

#elif defined(FAULTY_longjmp) /* jumps to a function that has returned */
static jmp_buf gone;
__attribute__((noinline)) static void deep(void) {
  volatile char frame[4096];
  frame[0] = 0;
  if (setjmp(gone) != 0) abort();
  frame[4095] = frame[0];
}
static void die(void) {
  deep();
  longjmp(gone, 1);
}

#elif defined(FAULTY_deadlock)
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void die(void) {
  pthread_mutex_lock(&lock);
  pthread_mutex_lock(&lock);
}
#endif

driftd_status faulty_refresh(driftd_instance self, driftd_call call, const driftd_refresh_args* args,
                             driftd_refresh_result* result) {
  die();
  return base_refresh(self, call, args, result);
}
