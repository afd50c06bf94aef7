/* SPDX-License-Identifier: Apache-2.0 */
/* The base provider's table without its listing: describe, schema, open, health, watch, and the weak functions. */
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base.h"

#define WEAK __attribute__((weak))
#define AS_BASE(type, name, parameters, arguments) \
  WEAK type faulty_##name parameters { return base_##name arguments; }

driftd_host_table base_host;

driftd_status base_describe(driftd_push_fn push, void* user) {
  char text[512];
  snprintf(text, sizeof text,
           "{\"id\":\"%s\",\"version\":\"1.0\",\"types\":[\"%s\"],\"kinds\":[\"topic\",\"role\"],\"concurrency\":4,"
           "\"diff\":true,\"metrics\":[{\"name\":\"things\",\"unit\":\"1\"}],"
           "\"extensions\":[{\"id\":\"driftd.watch\",\"revision\":1}]}",
           base_name, base_name);
  return base_push(push, user, text);
}

driftd_status base_schema(driftd_str what, driftd_push_fn push, void* user) {
  if (base_is(what, "settings"))
    return base_push(push, user,
                     "{\"type\":\"object\",\"additionalProperties\":false,\"properties\":{"
                     "\"count\":{\"type\":\"integer\",\"minimum\":0,\"maximum\":1000},"
                     "\"password\":{\"type\":\"string\",\"writeOnly\":true}}}");
  if (base_is(what, kKindNames[kTopics]))
    return base_push(push, user,
                     "{\"schema\":\"driftd-schema/1\",\"kind\":\"topic\",\"title\":\"a topic\",\"attributes\":{"
                     "\"partitions\":{\"type\":\"int\"},\"retention\":{\"type\":\"duration\"},\"owner\":{}}}");
  if (base_is(what, kKindNames[kRoles]))
    return base_push(push, user,
                     "{\"schema\":\"driftd-schema/1\",\"kind\":\"role\",\"title\":\"a role\",\"attributes\":{"
                     "\"login\":{\"type\":\"bool\"},\"limit\":{\"type\":\"int\"}}}");
  return DRIFTD_NOT_FOUND;
}

driftd_status base_open(driftd_call call, const driftd_open_args* args, driftd_instance* out) {
  base_instance* self = calloc(1, sizeof *self);
  if (self == NULL) return base_fail(call, DRIFTD_INTERNAL, "out of memory");
  if (!base_read_settings(self, args)) {
    free(self);
    return base_fail(call, DRIFTD_INVALID, "settings: expected an object with count 0 to 1000 and a password");
  }
  self->nudge = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (self->nudge < 0) {
    free(self);
    return base_fail(call, DRIFTD_UNAVAILABLE, "no descriptor is left; raise the limit of open files");
  }
  *out = self;
  return DRIFTD_OK;
}

driftd_status base_diff(driftd_instance self, const driftd_diff_args* args, driftd_verdict_fn push, void* user) {
  (void)self;
  for (uint32_t i = 0; i < args->change_count; ++i) {
    const driftd_change* c = (const void*)((const char*)args->changes + (size_t)i * args->change_stride);
    if (!base_is(c->path, "owner") || c->old_value.len != 0 || !base_is(c->new_value, "\"\"")) continue;
    const driftd_verdict verdict = {sizeof verdict, c->index, DRIFTD_VERDICT_EQUIVALENT, 0,
                                    base_str("an empty owner is none")};
    push(user, &verdict);
  }
  return DRIFTD_OK;
}

driftd_status base_health(driftd_instance self, driftd_call call, driftd_health_fn push, void* user) {
  (void)self;
  (void)call;
  const driftd_health health = {
      .size = sizeof health, .state = DRIFTD_HEALTH_UP, .latency_us = 1, .role = base_str("keeper")};
  push(user, &health);
  return DRIFTD_OK;
}

driftd_status base_watch(driftd_instance given, driftd_call call, const driftd_watch_args* args) {
  base_instance* self = given;
  base_run at = {(1u << kKinds) - 1, 0, 0, 0};
  struct pollfd ends[2] = {{base_host.cancel_fd(call), POLLIN, 0}, {self->nudge, POLLIN, 0}};
  if (!base_parse_cursor(self, args->cursor, &at))
    return base_fail(call, DRIFTD_CURSOR_EXPIRED, "the cursor is not of this watch; refresh");
  for (;;) {
    uint64_t nudges;
    const driftd_status status = base_may_go_on(call);
    if (status != DRIFTD_OK) return status;
    poll(ends, 2, ends[0].fd < 0 ? 100 : 10000);
    (void)!read(self->nudge, &nudges, sizeof nudges);
  }
}

void base_wake(driftd_instance given) {
  const uint64_t once = 1;
  (void)!write(((base_instance*)given)->nudge, &once, sizeof once);
}

void base_close(driftd_instance given) {
  close(((base_instance*)given)->nudge);
  free(given);
}

static driftd_status call_watch(driftd_instance self, driftd_call call, const driftd_watch_args* args) {
  return faulty_watch(self, call, args);
}

const void* base_query(driftd_str id, uint32_t revision) {
  static const driftd_watch_table kWatch = {sizeof kWatch, 0, &call_watch};
  return revision == DRIFTD_EXT_WATCH_REVISION && base_is(id, DRIFTD_EXT_WATCH) ? &kWatch : NULL;
}

driftd_status base_entry(const driftd_host_table* host, const driftd_offer* offer, driftd_accept* out) {
  static const driftd_provider_table kTable = {sizeof kTable,    0,
                                               &faulty_describe, &faulty_schema,
                                               &faulty_open,     &faulty_read,
                                               &faulty_refresh,  &faulty_diff,
                                               &faulty_health,   &faulty_wake,
                                               &faulty_close,    &faulty_query};
  (void)offer; /* it needs minor 0 only, which every host has */
  if (base_host.size == 0) memcpy(&base_host, host, host->size < sizeof base_host ? host->size : sizeof base_host);
  out->minor_built = DRIFTD_ABI_MINOR;
  out->minor_needed = 0;
  out->table = &kTable;
  return DRIFTD_OK;
}

/* ---- what faulty providers replace ---------------------------------------------------------------------------- */

AS_BASE(driftd_status, entry, (const driftd_host_table* host, const driftd_offer* offer, driftd_accept* out),
        (host, offer, out))
AS_BASE(driftd_status, describe, (driftd_push_fn push, void* user), (push, user))
AS_BASE(driftd_status, schema, (driftd_str what, driftd_push_fn push, void* user), (what, push, user))
AS_BASE(driftd_status, open, (driftd_call call, const driftd_open_args* args, driftd_instance* out), (call, args, out))
AS_BASE(driftd_status, read,
        (driftd_instance self, driftd_call call, const driftd_identity* ids, uint32_t count, uint32_t stride),
        (self, call, ids, count, stride))
AS_BASE(driftd_status, refresh,
        (driftd_instance self, driftd_call call, const driftd_refresh_args* args, driftd_refresh_result* result),
        (self, call, args, result))
AS_BASE(driftd_status, diff, (driftd_instance self, const driftd_diff_args* args, driftd_verdict_fn push, void* user),
        (self, args, push, user))
AS_BASE(driftd_status, health, (driftd_instance self, driftd_call call, driftd_health_fn push, void* user),
        (self, call, push, user))
AS_BASE(const void*, query, (driftd_str id, uint32_t revision), (id, revision))
AS_BASE(driftd_status, watch, (driftd_instance self, driftd_call call, const driftd_watch_args* args),
        (self, call, args))
WEAK void faulty_wake(driftd_instance self) { base_wake(self); }
WEAK void faulty_close(driftd_instance self) { base_close(self); }
WEAK void faulty_record(base_instance* self, driftd_record* record, char* body) {
  (void)self, (void)record, (void)body;
}
WEAK void faulty_mark(driftd_mark* mark) { (void)mark; }

DRIFTD_EXPORT driftd_status driftd_provider_v1(const driftd_host_table* host, const driftd_offer* offer,
                                               driftd_accept* out) {
  return faulty_entry(host, offer, out);
}
