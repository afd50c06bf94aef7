/* SPDX-License-Identifier: Apache-2.0 */
/* These misuse their own memory or the host's. */
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base.h"

/* Uses memory in a way that the compiler cannot remove. */
static void* volatile kept;
__attribute__((unused)) static void leak(size_t bytes) {
  kept = malloc(bytes);
  if (kept != NULL) memset(kept, 1, bytes);
}

#if defined(FAULTY_keeps_input)
static driftd_str backend; /* from driftd_open_args: it belongs to the host */
driftd_status faulty_open(driftd_call call, const driftd_open_args* args, driftd_instance* out) {
  backend = args->backend;
  return base_open(call, args, out);
}
void faulty_record(base_instance* self, driftd_record* record, char* body) {
  (void)self;
  if (!base_is(record->kind, "topic")) return;
  const unsigned char first = backend.len > 0 ? (unsigned char)backend.data[0] : 0;
  snprintf(body, kBody, "{\"partitions\":1,\"retention\":\"1h\",\"owner\":\"%02x\"}", first);
  record->body = base_str(body);
}

#elif defined(FAULTY_writes_input)
driftd_status faulty_open(driftd_call call, const driftd_open_args* args, driftd_instance* out) {
  const driftd_status status = base_open(call, args, out);
  if (args->settings.len > 0) *(volatile char*)args->settings.data = '{';
  return status;
}

#elif defined(FAULTY_frees_host_memory)
driftd_status faulty_open(driftd_call call, const driftd_open_args* args, driftd_instance* out) {
  const driftd_status status = base_open(call, args, out);
  void* volatile theirs = (void*)args->settings.data;
  free(theirs);
  return status;
}

#elif defined(FAULTY_strlen_user)
driftd_status faulty_open(driftd_call call, const driftd_open_args* args, driftd_instance* out) {
  driftd_open_args measured = *args;
  const char* volatile text = args->settings.data;
  if (strlen(text) < measured.settings.len) measured.settings.len = strlen(text);
  return base_open(call, &measured, out);
}

#elif defined(FAULTY_leaks_open)
driftd_status faulty_open(driftd_call call, const driftd_open_args* args, driftd_instance* out) {
  leak(16 << 10);
  return base_open(call, args, out);
}

#elif defined(FAULTY_leaks_descriptors)
driftd_status faulty_open(driftd_call call, const driftd_open_args* args, driftd_instance* out) {
  const driftd_status status = base_open(call, args, out);
  if (status == DRIFTD_OK && dup(((base_instance*)*out)->nudge) < 0) abort();
  return status;
}

#elif defined(FAULTY_leaks_calls_descriptors)
driftd_status faulty_refresh(driftd_instance self, driftd_call call, const driftd_refresh_args* args,
                             driftd_refresh_result* result) {
  for (int i = 0; i < 20; ++i)
    if (dup(((base_instance*)self)->nudge) < 0) return base_fail(call, DRIFTD_UNAVAILABLE, "no descriptor is left");
  return base_refresh(self, call, args, result);
}

#elif defined(FAULTY_tires) /* like a provider that never returns connections to its pool */
driftd_status faulty_refresh(driftd_instance self, driftd_call call, const driftd_refresh_args* args,
                             driftd_refresh_result* result) {
  static atomic_int left = 30;
  if (left-- <= 0) return base_fail(call, DRIFTD_UNAVAILABLE, "no connection is left in the pool");
  return base_refresh(self, call, args, result);
}

#elif defined(FAULTY_leaks_refresh)
driftd_status faulty_refresh(driftd_instance self, driftd_call call, const driftd_refresh_args* args,
                             driftd_refresh_result* result) {
  leak(256 << 10);
  return base_refresh(self, call, args, result);
}

#elif defined(FAULTY_leaks_threads)
static void* idle(void* nothing) {
  poll(NULL, 0, -1);
  return nothing;
}
driftd_status faulty_refresh(driftd_instance self, driftd_call call, const driftd_refresh_args* args,
                             driftd_refresh_result* result) {
  pthread_attr_t small;
  pthread_t thread;
  pthread_attr_init(&small);
  pthread_attr_setstacksize(&small, 64 << 10);
  for (int i = 0; i < 20; ++i)
    if (pthread_create(&thread, &small, idle, NULL) != 0)
      return base_fail(call, DRIFTD_UNAVAILABLE, "no thread can be started any more");
  return base_refresh(self, call, args, result);
}

#elif defined(FAULTY_leaks)
driftd_status faulty_refresh(driftd_instance self, driftd_call call, const driftd_refresh_args* args,
                             driftd_refresh_result* result) {
  for (int i = 0; i < 24; ++i) leak(16u << 20);
  while (!base_host.cancelled(call)) base_wait(call, 1000);
  return base_refresh(self, call, args, result);
}

#elif defined(FAULTY_half_open)
driftd_status faulty_open(driftd_call call, const driftd_open_args* args, driftd_instance* out) {
  static base_instance half;
  const driftd_status status = base_open(call, args, out);
  if (status != DRIFTD_OK) *out = &half;
  return status;
}

#elif defined(FAULTY_secret_blind)
static void keep(void* user, const uint8_t* data, uint64_t len) {
  char* copy = malloc(len + 1);
  copy[len] = 0;
  for (uint64_t i = 0; i < len; ++i) ((volatile char*)copy)[i] = (char)data[i];
  (void)user, free(copy);
}
driftd_status faulty_refresh(driftd_instance self, driftd_call call, const driftd_refresh_args* args,
                             driftd_refresh_result* result) {
  base_instance* const mine = self;
  if (mine->token[0] != 0) base_host.secret(call, base_str(mine->token), keep, NULL);
  return base_refresh(self, call, args, result);
}

#elif defined(FAULTY_alloc_blind)
static void use_memory(void) {
  volatile char* memory = malloc(4096);
  memory[0] = 1;
  free((void*)memory);
}
driftd_status faulty_open(driftd_call call, const driftd_open_args* args, driftd_instance* out) {
  use_memory();
  return base_open(call, args, out);
}
driftd_status faulty_refresh(driftd_instance self, driftd_call call, const driftd_refresh_args* args,
                             driftd_refresh_result* result) {
  use_memory();
  return base_refresh(self, call, args, result);
}
#endif
