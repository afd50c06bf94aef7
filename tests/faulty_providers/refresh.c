/* SPDX-License-Identifier: Apache-2.0 */
/* These return, but with wrong results. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base.h"

#define REFRESH                                                                                         \
  driftd_status faulty_refresh(driftd_instance self, driftd_call call, const driftd_refresh_args* args, \
                               driftd_refresh_result* result)

#if defined(FAULTY_never_still) /* the system that it reads changes fifty times a second */
void faulty_record(base_instance* self, driftd_record* record, char* body) {
  struct timespec now;
  (void)self;
  if (!base_is(record->kind, "topic")) return;
  clock_gettime(CLOCK_MONOTONIC, &now);
  const long tick = (long)now.tv_sec * 50 + now.tv_nsec / 20000000;
  snprintf(body, kBody, "{\"partitions\":%ld,\"retention\":\"1h\",\"owner\":\"\"}", tick);
  record->body = base_str(body);
}

#elif defined(FAULTY_random_body)
void faulty_record(base_instance* self, driftd_record* record, char* body) {
  struct timespec now;
  (void)self;
  if (!base_is(record->kind, "role")) return;
  clock_gettime(CLOCK_MONOTONIC, &now);
  snprintf(body, kBody, "{\"limit\":%ld}", now.tv_nsec);
  record->body = base_str(body);
}

#elif defined(FAULTY_miscounts)
void faulty_mark(driftd_mark* mark) { mark->count += mark->type == DRIFTD_MARK_COMPLETE; }

#elif defined(FAULTY_same_id_twice)
void faulty_record(base_instance* self, driftd_record* record, char* body) {
  (void)self, (void)body;
  if (base_is(record->id, "role-001")) record->id = base_str("role-000");
}

#elif defined(FAULTY_never_finishes) /* when asked to finish, it repeats the last page without end */
static driftd_status (*theirs)(driftd_call, const driftd_record*, uint32_t, uint32_t);
static driftd_status insist(driftd_call call, const driftd_record* records, uint32_t count, uint32_t stride) {
  driftd_status status = theirs(call, records, count, stride);
  while (status == DRIFTD_FINISH_SOON && !base_host.cancelled(call)) {
    base_wait(call, 10);
    status = theirs(call, records, count, stride);
  }
  return status;
}
driftd_status faulty_entry(const driftd_host_table* host, const driftd_offer* offer, driftd_accept* out) {
  const driftd_status status = base_entry(host, offer, out);
  theirs = host->emit;
  base_host.emit = insist;
  return status;
}

#elif defined(FAULTY_loses_on_resume)
REFRESH {
  driftd_refresh_args later = *args;
  char cursor[kCursor] = {0};
  unsigned scope;
  unsigned kind;
  unsigned next;
  if (args->cursor.len < sizeof cursor) memcpy(cursor, args->cursor.data, args->cursor.len);
  if (sscanf(cursor, "pos:%u:%u:%u", &scope, &kind, &next) == 3 && next < ((base_instance*)self)->count[kind]) {
    snprintf(cursor, sizeof cursor, "pos:%u:%u:%u", scope, kind, next + 1);
    later.cursor = base_str(cursor);
  }
  return base_refresh(self, call, &later, result);
}

#elif defined(FAULTY_trusts_cursor) /* it takes an unreadable cursor for the end */
REFRESH {
  if (args->cursor.len > 0 && (args->cursor.len < 4 || memcmp(args->cursor.data, "pos:", 4) != 0)) return DRIFTD_OK;
  return base_refresh(self, call, args, result);
}

#elif defined(FAULTY_huge_cursor)
void faulty_mark(driftd_mark* mark) {
  static char huge[(64 << 10) + 1];
  memset(huge, 'c', sizeof huge);
  if (mark->type == DRIFTD_MARK_CHECKPOINT) mark->cursor = (driftd_str){huge, sizeof huge};
}

#elif defined(FAULTY_all_kinds)
REFRESH {
  driftd_refresh_args all = *args;
  all.kinds = NULL;
  all.kind_count = 0;
  return base_refresh(self, call, &all, result);
}

#elif defined(FAULTY_unchanged_always)
REFRESH {
  (void)self, (void)call, (void)args;
  result->unchanged = 1;
  return DRIFTD_OK;
}

#elif defined(FAULTY_read_differs)
static __thread int reading;
driftd_status faulty_read(driftd_instance self, driftd_call call, const driftd_identity* ids, uint32_t count,
                          uint32_t stride) {
  reading = 1;
  const driftd_status status = base_read(self, call, ids, count, stride);
  reading = 0;
  return status;
}
void faulty_record(base_instance* self, driftd_record* record, char* body) {
  (void)self;
  if (!reading || !base_is(record->kind, "role")) return;
  snprintf(body, kBody, "{\"login\":true}");
  record->body = base_str(body);
}

#elif defined(FAULTY_silent_read)
driftd_status faulty_read(driftd_instance self, driftd_call call, const driftd_identity* ids, uint32_t count,
                          uint32_t stride) {
  for (uint32_t n = 0; n < count; ++n) {
    const driftd_identity* asked = (const void*)((const char*)ids + (size_t)n * stride);
    const int known = asked->id.len == 8 && (memcmp(asked->id.data, "role-00", 7) == 0);
    const int topic = asked->id.len == 9 && memcmp(asked->id.data, "topic-00", 8) == 0;
    const driftd_status status = known || topic ? base_read(self, call, asked, 1, stride) : DRIFTD_OK;
    if (status != DRIFTD_OK) return status;
  }
  return DRIFTD_OK;
}

#elif defined(FAULTY_own_clock)
void faulty_record(base_instance* self, driftd_record* record, char* body) {
  struct timespec now;
  (void)self, (void)body;
  clock_gettime(CLOCK_REALTIME, &now);
  record->observed_ns = now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

#elif defined(FAULTY_bad_verdict)
driftd_status faulty_diff(driftd_instance self, const driftd_diff_args* args, driftd_verdict_fn push, void* user) {
  (void)self;
  const driftd_verdict verdict = {sizeof verdict, args->change_count + 7, DRIFTD_VERDICT_EQUIVALENT, 0, {NULL, 0}};
  push(user, &verdict);
  return DRIFTD_OK;
}

#elif defined(FAULTY_spinning_watch)
driftd_status faulty_watch(driftd_instance self, driftd_call call, const driftd_watch_args* args) {
  const driftd_mark hint = {.size = sizeof hint, .type = DRIFTD_MARK_BOOKMARK};
  (void)self, (void)args;
  while (!base_host.cancelled(call)) base_host.mark(call, &hint);
  return base_fail(call, DRIFTD_CANCELLED, "cancelled by the host");
}
#endif
