/* SPDX-License-Identifier: Apache-2.0 */
/* A provider that says it was built for minor 3 of the ABI. Its table has more slots than the current host knows, its
 * structs and array elements are longer. MINOR_NEEDED is the lowest minor of a host on which it runs. If REFUSAL is
 * defined, the provider refuses every host with that text. */
#include <stdio.h>
#include <string.h>

#include "driftd/provider.h"

typedef struct newer_table {
  driftd_provider_table known;
  driftd_status (*added)(driftd_instance self);
  driftd_status (*added_too)(driftd_instance self);
} newer_table;
typedef struct newer_record {
  driftd_record known;
  driftd_str added;
} newer_record;
typedef struct newer_kv {
  driftd_kv known;
  uint64_t added;
} newer_kv;
typedef struct newer_unread {
  driftd_unread known;
  uint64_t added;
} newer_unread;
typedef struct newer_mark {
  driftd_mark known;
  uint64_t added;
} newer_mark;
typedef struct newer_diagnostic {
  driftd_diagnostic known;
  uint64_t added;
} newer_diagnostic;
typedef struct newer_health {
  driftd_health known;
  driftd_str added;
} newer_health;

static const driftd_host_table* host;

static driftd_str text(const char* from) {
  driftd_str out = {from, strlen(from)};
  return out;
}

static driftd_status describe(driftd_push_fn push, void* user) {
  push(user,
       text("{\"id\":\"newer\",\"version\":\"3\",\"types\":[\"newer\"],\"kinds\":[\"thing\"],\"future\":{},"
            "\"extensions\":[{\"id\":\"driftd.teleport\",\"revision\":1},{\"id\":\"driftd.watch\",\"revision\":7}]}"));
  return DRIFTD_OK;
}

static driftd_status schema(driftd_str what, driftd_push_fn push, void* user) {
  if (what.len == 5 && memcmp(what.data, "thing", 5) == 0) {
    push(user,
         text("{\"schema\":\"driftd-schema/1\",\"kind\":\"thing\",\"revision\":1,\"class\":\"config\",\"title\":\"t\","
              "\"attributes\":{}}"));
    return DRIFTD_OK;
  }
  push(user, text("{\"type\":\"object\"}"));
  return DRIFTD_OK;
}

static driftd_status open_instance(driftd_call call, const driftd_open_args* args, driftd_instance* out) {
  newer_kv kv[2] = {{{sizeof kv[0], 0, text("first"), text("1")}, ~0ull},
                    {{sizeof kv[0], 0, text("second"), text("2")}, ~0ull}};
  (void)args;
  host->log(call, DRIFTD_LOG_WARN, text("opened by a newer provider"), &kv[0].known, 2);
  *out = NULL;
  return DRIFTD_OK;
}

static driftd_status emit(driftd_call call) {
  newer_record records[2];
  newer_unread hidden[2] = {{{sizeof hidden[0], DRIFTD_DENIED, text("x"), text("r")}, ~0ull},
                            {{sizeof hidden[0], DRIFTD_DENIED, text("y"), text("r")}, ~0ull}};
  memset(records, 0, sizeof records);
  for (int i = 0; i < 2; ++i) {
    records[i].known.size = sizeof records[i];
    records[i].known.kind = text("thing");
    records[i].known.id = text(i == 0 ? "a" : "b");
    records[i].known.body = text("{\"size\":1}");
    records[i].known.unread = &hidden[0].known;
    records[i].known.unread_count = 2;
    records[i].known.unread_stride = sizeof hidden[0];
    records[i].known.observed_ns = host->now();
    records[i].added = text("of tomorrow");
  }
  return host->emit(call, &records[0].known, 2, sizeof records[0]);
}

static driftd_status read_some(driftd_instance self, driftd_call call, const driftd_identity* ids, uint32_t count,
                               uint32_t stride) {
  newer_diagnostic gone;
  (void)self, (void)stride;
  if (count == 0) return DRIFTD_OK;
  memset(&gone, 0, sizeof gone);
  gone.known.size = sizeof gone;
  gone.known.code = DRIFTD_NOT_FOUND;
  gone.known.kind = ids[0].kind;
  gone.known.id = ids[0].id;
  gone.added = ~0ull;
  host->diag(call, &gone.known);
  return DRIFTD_OK;
}

static driftd_status refresh(driftd_instance self, driftd_call call, const driftd_refresh_args* args,
                             driftd_refresh_result* result) {
  newer_mark whole;
  driftd_status status = emit(call);
  (void)self, (void)args, (void)result;
  if (status != DRIFTD_OK) return status;
  memset(&whole, 0, sizeof whole);
  whole.known.size = sizeof whole;
  whole.known.type = DRIFTD_MARK_COMPLETE;
  whole.known.kind = text("thing");
  whole.known.count = 2;
  whole.added = ~0ull;
  return host->mark(call, &whole.known);
}

static driftd_status diff(driftd_instance self, const driftd_diff_args* args, driftd_verdict_fn push, void* user) {
  (void)self, (void)args, (void)push, (void)user;
  return DRIFTD_UNSUPPORTED;
}

static driftd_status health(driftd_instance self, driftd_call call, driftd_health_fn push, void* user) {
  newer_health up;
  (void)self, (void)call;
  memset(&up, 0, sizeof up);
  up.known.size = sizeof up;
  up.known.state = DRIFTD_HEALTH_UP;
  up.known.role = text("primary");
  up.added = text("of tomorrow");
  push(user, &up.known);
  return DRIFTD_OK;
}

static void wake(driftd_instance self) { (void)self; }
static void close_instance(driftd_instance self) { (void)self; }
static driftd_status added(driftd_instance self) {
  (void)self;
  return DRIFTD_OK;
}

/* The current host asks for driftd.watch/1. This provider has only revision 7 of it, so it answers NULL. */
static const void* query(driftd_str id, uint32_t revision) {
  static const uint32_t watch_7[16] = {sizeof watch_7};
  return id.len == 12 && memcmp(id.data, "driftd.watch", 12) == 0 && revision == 7 ? watch_7 : NULL;
}

driftd_status driftd_provider_v1(const driftd_host_table* given, const driftd_offer* offer, driftd_accept* out) {
  static const newer_table table = {
      {sizeof table, 0, describe, schema, open_instance, read_some, refresh, diff, health, wake, close_instance, query},
      added,
      added};
  host = given;
  out->minor_built = 3;
  out->minor_needed = MINOR_NEEDED;
#ifdef REFUSAL
  (void)offer;
  out->refusal = text(REFUSAL);
  return DRIFTD_UNSUPPORTED;
#else
  if (out->minor_needed > offer->minor_max) return DRIFTD_UNSUPPORTED;
  out->table = &table.known;
  return DRIFTD_OK;
#endif
}
