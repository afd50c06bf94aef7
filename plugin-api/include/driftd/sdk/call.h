/* SPDX-License-Identifier: Apache-2.0 */
/* SDK of a provider in C, first half: what is done in a call. Not part of the ABI: all of it is compiled in.
 *
 * Texts are NUL-terminated C strings in UTF-8, borrowed until the function returns; the host copies what it keeps. A
 * function marked [call] may only be called on the thread and inside the call of the provider that `call` belongs to.
 * A status that is not OK is returned by the provider's function as it is. DRIFTD_FINISH_SOON is not an error: the
 * record or mark was taken, and the provider should return soon, without COMPLETE for what is not whole. */
#ifndef DRIFTD_SDK_CALL_H
#define DRIFTD_SDK_CALL_H

#include <poll.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driftd/ext/watch.h"

/* The bytes of a C string, borrowed; NULL is the empty text. */
static inline driftd_str driftd_text(const char* text) {
  driftd_str out;
  out.data = text;
  out.len = text != NULL ? strlen(text) : 0;
  return out;
}

/* Returns 1 if they are the same bytes, else 0. `b` must not be NULL. */
static inline int driftd_same(driftd_str a, const char* b) {
  const size_t len = strlen(b);
  return a.len == len && (len == 0 || memcmp(a.data, b, len) == 0);
}

/* Copies text and a NUL into `into`, which has `room` bytes, and returns 1. Returns 0 and writes nothing if there is no
 * room or the text has a NUL within, which a C function would take for its end. */
static inline int driftd_c_string(driftd_str text, char* into, size_t room) {
  if (text.len >= room || (text.len != 0 && memchr(text.data, '\0', (size_t)text.len) != NULL)) return 0;
  if (text.len != 0) memcpy(into, text.data, (size_t)text.len);
  into[text.len] = '\0';
  return 1;
}

/* Returns the i-th identity of a read. `stride` is the host's size of one, which may not be ours, so `ids[i]` would be
 * wrong. {call} */
static inline const driftd_identity* driftd_identity_at(const driftd_identity* ids, uint32_t stride, uint32_t i) {
  return (const driftd_identity*)(const void*)((const char*)ids + (size_t)i * stride);
}

/* Returns 1 if a refresh is asked for this kind, else 0. No list of kinds means all of them. */
static inline int driftd_wants(const driftd_refresh_args* args, const char* kind) {
  for (uint32_t i = 0; i < args->kind_count; ++i) {
    if (driftd_same(args->kinds[i], kind)) return 1;
  }
  return args->kind_count == 0;
}

#define DRIFTD_FAILURE_ROOM 4096 /* bytes of one reason, its NUL included; longer ones are cut */
/* Where driftd_fail also copies its text, for the health report of a system that is down: DRIFTD_FAILURE_ROOM bytes
 * of the call that runs on this thread, or NULL (no copy). DRIFTD_PROVIDER_IN_C sets and clears it around health. */
static inline char** driftd_why(void) {
  static __thread char* room;
  return &room;
}

/* Reports why the call fails and returns `code`, so that a function ends with `return driftd_fail(...)`. `right` is
 * what must be granted (NULL: no right is missing). The text, as of printf, says what was found, what was expected and
 * what to do next, without a secret; it is cut at DRIFTD_FAILURE_ROOM. [call] */
__attribute__((format(printf, 5, 6))) static inline driftd_status driftd_fail(const driftd_host_table* host,
                                                                              driftd_call call, driftd_status code,
                                                                              const char* right, const char* format,
                                                                              ...) {
  char text[DRIFTD_FAILURE_ROOM];
  driftd_diagnostic out;
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  if (*driftd_why() != NULL) memcpy(*driftd_why(), text, strlen(text) + 1);
  memset(&out, 0, sizeof out);
  out.size = sizeof out;
  out.code = code;
  out.text = driftd_text(text);
  out.right = driftd_text(right);
  host->diag(call, &out);
  return code;
}

/* Reports UP for OK, and DOWN with the reason `why` for UNAVAILABLE; both are OK: a system that is down
 * is not a failure of the call. Any other status is the call's: it is returned and nothing is pushed. `why` may be
 * NULL. [call] */
static inline driftd_status driftd_push_health(driftd_status status, const char* why, driftd_health_fn push,
                                               void* user) {
  driftd_health out;
  if (status != DRIFTD_OK && status != DRIFTD_UNAVAILABLE) return status;
  memset(&out, 0, sizeof out);
  out.size = sizeof out;
  out.state = status == DRIFTD_OK ? DRIFTD_HEALTH_UP : DRIFTD_HEALTH_DOWN;
  if (status != DRIFTD_OK) out.reason = driftd_text(why);
  push(user, &out);
  return DRIFTD_OK;
}

/* Reports that the system has no such resource; only if the system answered so, because this can become a deletion.
 * Returns OK, because the identity is answered. Hosts older than `backend` of driftd_identity are served too. [call] */
static inline driftd_status driftd_not_found(const driftd_host_table* host, driftd_call call,
                                             const driftd_identity* id) {
  driftd_diagnostic out;
  memset(&out, 0, sizeof out);
  out.size = sizeof out;
  out.code = DRIFTD_NOT_FOUND;
  out.kind = id->kind;
  out.id = id->id;
  if (id->size >= offsetof(driftd_identity, backend) + sizeof id->backend) out.backend = id->backend;
  out.text = driftd_text("gone");
  host->diag(call, &out);
  return DRIFTD_OK;
}

/* Makes an attribute that exists but could not be read, for driftd_emit: `code` says why, `reason` names the missing
 * right in one sentence. It is judged unknown, never drift. Borrows both texts. */
static inline driftd_unread driftd_not_read(const char* path, driftd_status code, const char* reason) {
  driftd_unread out;
  out.size = sizeof out;
  out.code = code;
  out.path = driftd_text(path);
  out.reason = driftd_text(reason);
  return out;
}

/* Emits one resource. `body` is a JSON object with its attributes, `observed_ns` the wall clock (host->now()) when it
 * was asked for, `unread` one attribute or NULL. Only in read, refresh and watch. May block until the agent took
 * earlier records. Returns what the host does: OK, FINISH_SOON, INVALID (nothing taken), BUDGET, CANCELLED, DEADLINE,
 * INTERNAL. [call] */
static inline driftd_status driftd_emit(const driftd_host_table* host, driftd_call call, const char* kind,
                                        const char* id, const char* body, int64_t observed_ns,
                                        const driftd_unread* unread) {
  driftd_record out;
  memset(&out, 0, sizeof out);
  out.size = sizeof out;
  out.kind = driftd_text(kind);
  out.id = driftd_text(id);
  out.body = driftd_text(body);
  out.observed_ns = observed_ns;
  out.unread = unread;
  out.unread_count = unread != NULL ? 1 : 0;
  out.unread_stride = sizeof(driftd_unread);
  return host->emit(call, &out, 1, sizeof out);
}

/* Declares that every resource of `kind` was emitted in this run, `count` of them. Only then may the agent count a
 * missing one as deleted: leave it out for a kind that was not listed whole. Only in refresh. Returns as driftd_emit;
 * INVALID also if a record of this call was refused. [call] */
static inline driftd_status driftd_complete(const driftd_host_table* host, driftd_call call, const char* kind,
                                            uint64_t count) {
  driftd_mark out;
  memset(&out, 0, sizeof out);
  out.size = sizeof out;
  out.type = DRIFTD_MARK_COMPLETE;
  out.kind = driftd_text(kind);
  out.count = count;
  return host->mark(call, &out);
}

/* Watch: tells the host to refresh now, by a BOOKMARK without a cursor and without records before it. Returns as
 * driftd_emit. [call] */
static inline driftd_status driftd_hint(const driftd_host_table* host, driftd_call call) {
  driftd_mark out;
  memset(&out, 0, sizeof out);
  out.size = sizeof out;
  out.type = DRIFTD_MARK_BOOKMARK;
  return host->mark(call, &out);
}

/* Watch: blocks until `fd` is readable, closed or broken (1), or the host wants the call to end (0), which it notices
 * within 1 s also where the host has no descriptor for it. Does not read from `fd`. [call] */
static inline int driftd_wait(const driftd_host_table* host, driftd_call call, int fd) {
  struct pollfd on[2];
  on[0].fd = fd;
  on[1].fd = host->cancel_fd(call);
  on[0].events = on[1].events = POLLIN;
  while (!host->cancelled(call)) {
    if (poll(on, 2, 1000) > 0 && on[0].revents != 0) return 1;
  }
  return 0;
}

/* A copy of the bytes of a secret, for one call. The provider owns it and ends it with driftd_forget. */
typedef struct driftd_secret {
  uint8_t* data; /* from malloc, not NUL-terminated; NULL: empty */
  uint64_t len;  /* bytes */
} driftd_secret;

/* driftd_use_fn of driftd_secret_of: copies the bytes into a driftd_secret; its data stays NULL without memory. */
static inline void driftd_keep_secret(void* user, const uint8_t* data, uint64_t len) {
  driftd_secret* out = (driftd_secret*)user;
  out->data = (uint8_t*)malloc((size_t)len + 1);
  if (out->data == NULL) return;
  if (len != 0) memcpy(out->data, data, (size_t)len);
  out->len = len;
}

/* Fills `out` with the bytes behind the token that a sensitive setting holds. Returns OK, or after a diagnostic what
 * the host answered (DENIED: the token was not issued for this instance) or INTERNAL (no memory); `out` is empty then.
 * End it with driftd_forget in any case. [call] */
static inline driftd_status driftd_secret_of(const driftd_host_table* host, driftd_call call, const char* token,
                                             driftd_secret* out) {
  out->data = NULL;
  out->len = 0;
  driftd_status status = host->secret(call, driftd_text(token), driftd_keep_secret, out);
  if (status == DRIFTD_OK && out->data == NULL) status = DRIFTD_INTERNAL;
  return status == DRIFTD_OK ? status : driftd_fail(host, call, status, NULL, "the host refused the secret");
}

/* Overwrites and frees the bytes, so that they are not left in memory. Of an empty one nothing happens; twice is
 * harmless. */
static inline void driftd_forget(driftd_secret* secret) {
  volatile uint8_t* at = secret->data;
  for (uint64_t i = 0; at != NULL && i < secret->len; ++i) at[i] = 0;
  free(secret->data);
  secret->data = NULL;
  secret->len = 0;
}

#endif /* DRIFTD_SDK_CALL_H */
