/* SPDX-License-Identifier: Apache-2.0 */
/* The C side of driftd.go: what Go calls in the host, what the host calls in Go, and the only exported symbol. */
#include "driftd.h"

#include "_cgo_export.h"

/* The functions of the host. driftd_provider_v1 sets this pointer before any other call. */
static const driftd_host_table* host;

/* ---- What Go calls. */

int64_t go_now(void) { return host->now(); }

int go_cancelled(driftd_call call) { return host->cancelled(call) != 0; }

int go_wait(driftd_call call, int fd) { return driftd_wait(host, call, fd); }

driftd_status go_emit(driftd_call call, go_text* kind, go_text* id, go_text* body, int64_t observed_ns, go_text* path,
                      driftd_status code, go_text* reason) {
  const driftd_unread unread = driftd_not_read(path, code, reason);
  return driftd_emit(host, call, kind, id, body, observed_ns, path != NULL ? &unread : NULL);
}

driftd_status go_mark(driftd_call call, uint32_t type, go_text* kind, go_text* cursor, uint64_t count) {
  const driftd_mark out = {
      .size = sizeof out, .type = type, .kind = driftd_text(kind), .cursor = driftd_text(cursor), .count = count};
  return host->mark(call, &out);
}

void go_diag(driftd_call call, driftd_status code, go_text* kind, go_text* id, go_text* text, go_text* right) {
  const driftd_diagnostic out = {.size = sizeof out,
                                 .code = code,
                                 .kind = driftd_text(kind),
                                 .id = driftd_text(id),
                                 .text = driftd_text(text),
                                 .right = driftd_text(right)};
  /* During a health call, the text is also the reason why the system is down. */
  if (*driftd_why() != NULL) snprintf(*driftd_why(), DRIFTD_FAILURE_ROOM, "%s", text);
  host->diag(call, &out);
}

driftd_status go_secret(driftd_call call, go_text* token, driftd_secret* out) {
  out->data = NULL;
  out->len = 0;
  const driftd_status status = host->secret(call, driftd_text(token), driftd_keep_secret, out);
  return status == DRIFTD_OK && out->data == NULL ? DRIFTD_INTERNAL : status;
}

void go_push(void* push, void* user, go_text* text, uint64_t len) {
  const driftd_str out = {text, len};
  const driftd_push_fn function = (driftd_push_fn)push; /* Go passes it as a void*, because it cannot call it */
  function(user, out);
}

/* ---- What the host calls. An instance is a handle of runtime/cgo: a number that is never dereferenced. */

static driftd_status describe(driftd_push_fn push, void* user) { return goDescribe((void*)push, user); }

static driftd_status schema(driftd_str what, driftd_push_fn push, void* user) {
  return goSchema((char*)what.data, what.len, (void*)push, user);
}

static driftd_status open(driftd_call call, const driftd_open_args* args, driftd_instance* out) {
  uintptr_t handle = 0;
  const driftd_status status = goOpen(call, (char*)args->settings.data, args->settings.len, &handle);
  if (status == DRIFTD_OK) *out = (driftd_instance)handle;
  return status;
}

static driftd_status read(driftd_instance self, driftd_call call, const driftd_identity* ids, uint32_t count,
                          uint32_t stride) {
  return goRead((uintptr_t)self, call, (void*)ids, count, stride);
}

static driftd_status refresh(driftd_instance self, driftd_call call, const driftd_refresh_args* args,
                             driftd_refresh_result* result) {
  (void)result;
  return goRefresh((uintptr_t)self, call, (void*)args);
}

/* This provider leaves every comparison to the host. */
static driftd_status diff(driftd_instance self, const driftd_diff_args* args, driftd_verdict_fn push, void* user) {
  (void)self;
  (void)args;
  (void)push;
  (void)user;
  return DRIFTD_UNSUPPORTED;
}

static driftd_status health(driftd_instance self, driftd_call call, driftd_health_fn push, void* user) {
  char why[DRIFTD_FAILURE_ROOM] = "";
  *driftd_why() = why;
  const driftd_status status = goHealth((uintptr_t)self, call);
  *driftd_why() = NULL;
  return driftd_push_health(status, why, push, user);
}

/* Nothing to do: watch() waits for the host's cancel descriptor. */
static void wake(driftd_instance self) { (void)self; }

static void close_instance(driftd_instance self) { goClose((uintptr_t)self); }

static driftd_status watch(driftd_instance self, driftd_call call, const driftd_watch_args* args) {
  (void)args;
  return goWatch((uintptr_t)self, call);
}

static const void* query(driftd_str id, uint32_t revision) {
  static const driftd_watch_table table = {sizeof table, 0, watch};
  return driftd_same(id, DRIFTD_EXT_WATCH) && revision == DRIFTD_EXT_WATCH_REVISION ? &table : NULL;
}

DRIFTD_EXPORT driftd_status driftd_provider_v1(const driftd_host_table* given, const driftd_offer* offer,
                                               driftd_accept* out) {
  static const driftd_provider_table table = {sizeof table, 0,    describe, schema, open,           read,
                                              refresh,      diff, health,   wake,   close_instance, query};
  (void)offer; /* minor_needed is 0: any host of this major version is accepted */
  host = given;
  out->minor_built = DRIFTD_ABI_MINOR;
  out->minor_needed = 0;
  out->table = &table;
  return DRIFTD_OK;
}
