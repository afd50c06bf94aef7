/* SPDX-License-Identifier: Apache-2.0 */
/* A provider in C11 as an author of 1.0-rc1 wrote it, against nothing but the header of that day. Kept as it is. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driftd/ext/watch.h"
#include "driftd/provider.h"

static const driftd_host_table* host;

static driftd_str text(const char* from) {
  driftd_str out = {from, strlen(from)};
  return out;
}

static int is(driftd_str a, const char* b) { return a.len == strlen(b) && memcmp(a.data, b, a.len) == 0; }

static driftd_status describe(driftd_push_fn push, void* user) {
  push(user, text("{\"id\":\"things\",\"version\":\"1\",\"types\":[\"things\"],\"kinds\":[\"thing\"],\"concurrency\":1,"
                  "\"extensions\":[{\"id\":\"driftd.watch\",\"revision\":1}],\"metrics\":[{\"name\":\"seen\",\"unit\":\"1\"}]}"));
  return DRIFTD_OK;
}

static driftd_status schema(driftd_str what, driftd_push_fn push, void* user) {
  if (is(what, "settings")) return push(user, text("{\"type\":\"object\"}")), DRIFTD_OK;
  if (!is(what, "thing")) return DRIFTD_NOT_FOUND;
  push(user, text("{\"schema\":\"driftd-schema/1\",\"kind\":\"thing\",\"revision\":1,\"class\":\"config\",\"title\":\"t\","
                  "\"attributes\":{\"password\":{\"type\":\"string\",\"class\":\"credential\",\"sensitive\":true}}}"));
  return DRIFTD_OK;
}

static driftd_status open_instance(driftd_call call, const driftd_open_args* args, driftd_instance* out) {
  driftd_kv kv = {sizeof kv, 0, text("backend"), args->backend};
  host->log(call, DRIFTD_LOG_INFO, text("opened"), &kv, 1);
  *out = calloc(1, 16);
  return *out != NULL ? DRIFTD_OK : DRIFTD_INTERNAL;
}

static driftd_status emit(driftd_call call, const char* id) {
  driftd_unread hidden = {sizeof hidden, DRIFTD_DENIED, text("owner"), text("may not see owners")};
  driftd_kv note = {sizeof note, 0, text("note"), text("n")};
  driftd_record record;
  memset(&record, 0, sizeof record);
  record.size = sizeof record;
  record.kind = text("thing");
  record.id = text(id);
  record.body = text("{\"size\":1,\"password\":\"p\"}");
  record.unread = &hidden;
  record.unread_count = 1;
  record.unread_stride = sizeof hidden;
  record.metadata = &note;
  record.metadata_count = 1;
  record.metadata_stride = sizeof note;
  record.observed_ns = host->now();
  return host->emit(call, &record, 1, sizeof record);
}

static driftd_status read_some(driftd_instance self, driftd_call call, const driftd_identity* ids, uint32_t count,
                               uint32_t stride) {
  const char* at = (const char*)ids;
  (void)self;
  for (uint32_t i = 0; i < count; ++i, at += stride) {
    const driftd_identity* id = (const driftd_identity*)at;
    if (is(id->id, "a") || is(id->id, "b")) {
      emit(call, is(id->id, "a") ? "a" : "b");
    } else {
      driftd_diagnostic gone = {sizeof gone, DRIFTD_NOT_FOUND, id->kind, id->id, {0, 0}, text("gone"), {0, 0}, 0};
      host->diag(call, &gone);
    }
  }
  return DRIFTD_OK;
}

static driftd_status refresh(driftd_instance self, driftd_call call, const driftd_refresh_args* args,
                             driftd_refresh_result* result) {
  (void)self;
  if (args->cursor.len != 0) return DRIFTD_CURSOR_EXPIRED;
  emit(call, "a");
  emit(call, "b");
  driftd_mark page = {sizeof page, DRIFTD_MARK_CHECKPOINT, {0, 0}, text("b"), 0};
  host->mark(call, &page);
  driftd_mark whole = {sizeof whole, DRIFTD_MARK_COMPLETE, text("thing"), {0, 0}, 2};
  host->metric(call, text("seen"), 2);
  result->next_ms = 4000;
  return host->mark(call, &whole);
}

static driftd_status diff(driftd_instance self, const driftd_diff_args* args, driftd_verdict_fn push, void* user) {
  (void)self, (void)args, (void)push, (void)user;
  return DRIFTD_UNSUPPORTED;
}

static driftd_status health(driftd_instance self, driftd_call call, driftd_health_fn push, void* user) {
  driftd_health up = {sizeof up, DRIFTD_HEALTH_UP, 1, {0, 0}, text("primary"), text("id-1"), text("9.9")};
  (void)self, (void)call;
  push(user, &up);
  return DRIFTD_OK;
}

static driftd_status watch(driftd_instance self, driftd_call call, const driftd_watch_args* args) {
  driftd_mark seen = {sizeof seen, DRIFTD_MARK_BOOKMARK, {0, 0}, text("w-1"), 0};
  (void)self, (void)args;
  emit(call, "a");
  return host->mark(call, &seen);
}

static void wake(driftd_instance self) { (void)self; }
static void close_instance(driftd_instance self) { free(self); }

static const void* query(driftd_str id, uint32_t revision) {
  static const driftd_watch_table table = {sizeof table, 0, watch};
  return is(id, DRIFTD_EXT_WATCH) && revision == DRIFTD_EXT_WATCH_REVISION ? &table : NULL;
}

driftd_status driftd_provider_v1(const driftd_host_table* given, const driftd_offer* offer, driftd_accept* out) {
  static const driftd_provider_table table = {sizeof table, 0,    describe, schema, open_instance,  read_some,
                                              refresh,      diff, health,   wake,   close_instance, query};
  (void)offer;
  host = given;
  out->minor_built = DRIFTD_ABI_MINOR;
  out->minor_needed = 0;
  out->table = &table;
  return DRIFTD_OK;
}
