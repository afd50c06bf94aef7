/* SPDX-License-Identifier: Apache-2.0 */
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base.h"

const char* const kKindNames[kKinds] = {"topic", "role"};

driftd_str base_str(const char* text) { return (driftd_str){text, strlen(text)}; }
int base_is(driftd_str given, const char* text) {
  return given.len == strlen(text) && (given.len == 0 || memcmp(given.data, text, given.len) == 0);
}
driftd_status base_push(driftd_push_fn push, void* user, const char* text) {
  push(user, base_str(text));
  return DRIFTD_OK;
}

driftd_status base_fail(driftd_call call, driftd_status code, const char* text) {
  const driftd_diagnostic d = {.size = sizeof d, .code = code, .text = base_str(text)};
  base_host.diag(call, &d);
  return code;
}
static driftd_status refused(driftd_call call, driftd_status code) {
  return base_fail(call, code, "the host refused what was told; the refresh ends here");
}

/* Returns OK if the call may go on. Otherwise pushes a diagnostic and returns why it must end. */
driftd_status base_may_go_on(driftd_call call) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  const int64_t deadline = base_host.deadline(call);
  if (base_host.cancelled(call)) return base_fail(call, DRIFTD_CANCELLED, "cancelled by the host; ask again");
  if (deadline > 0 && now.tv_sec * INT64_C(1000000000) + now.tv_nsec >= deadline)
    return base_fail(call, DRIFTD_DEADLINE, "the deadline passed; give the call more time");
  return DRIFTD_OK;
}

void base_wait(driftd_call call, int ms) {
  struct pollfd ends = {call == 0 ? -1 : base_host.cancel_fd(call), POLLIN, 0};
  poll(&ends, 1, ms);
}

/* ---- settings ----------------------------------------------------------------------------------------------- */

int base_setting(driftd_str json, const char* key, driftd_str* value) {
  int depth = 0;
  int is_key = 0; /* the string before the last colon is the wanted key */
  for (uint64_t i = 0; i < json.len; ++i) {
    const uint64_t begin = i;
    const char c = json.data[i];
    depth += (c == '{' || c == '[') - (c == '}' || c == ']');
    if (c == '"') {
      for (++i; i < json.len && json.data[i] != '"'; ++i) i += json.data[i] == '\\';
      *value = (driftd_str){json.data + begin + 1, (i < json.len ? i : json.len) - begin - 1};
      if (is_key) return 1;
      is_key = depth == 1 && base_is(*value, key);
    } else if (is_key && c != ':' && c != ' ') {
      while (i < json.len && strchr(",}] \n\r\t", json.data[i]) == NULL) ++i;
      *value = (driftd_str){json.data + begin, i - begin};
      return 1;
    }
  }
  return 0;
}

int base_read_settings(base_instance* self, const driftd_open_args* args) {
  driftd_str value;
  const driftd_str json = args->settings;
  if (json.len < 2 || json.data[0] != '{' || json.data[json.len - 1] != '}') return 0;
  self->count[kTopics] = kDefaultTopics;
  self->count[kRoles] = kRolesCount;
  if (base_setting(json, "count", &value)) {
    char digits[5] = {0};
    if (value.len == 0 || value.len >= sizeof digits) return 0;
    memcpy(digits, value.data, value.len);
    if (strspn(digits, "0123456789") != value.len || atoi(digits) > 1000) return 0;
    self->count[kTopics] = (unsigned)atoi(digits);
  }
  if (base_setting(json, "password", &value)) {
    if (value.len >= sizeof self->token) return 0;
    memcpy(self->token, value.data, value.len);
  }
  for (uint64_t i = 0; i < args->backend.len && i + 1 < sizeof self->owner; ++i) {
    const char c = args->backend.data[i];
    self->owner[i] = c > ' ' && c < 127 && c != '"' && c != '\\' ? c : '_';
  }
  return 1;
}

/* ---- things ------------------------------------------------------------------------------------------------- */

static void fill(base_instance* self, int kind, unsigned i, driftd_record* r, char* id, char* body) {
  snprintf(id, 32, "%s-%03u", kKindNames[kind], i);
  if (kind == kTopics) {
    snprintf(body, kBody, "{\"partitions\":%u,\"retention\":\"%uh\",\"owner\":\"%s\"}", i + 1, 24 * (i + 1),
             self->owner);
  } else {
    snprintf(body, kBody, "{\"login\":true,\"limit\":%u}", 10 * i);
  }
  *r = (driftd_record){.size = sizeof *r, .schema_revision = 1, .kind = base_str(kKindNames[kind]), .id = base_str(id)};
  r->status = base_str("{\"seen\":true}");
  r->version = base_str("1");
  r->observed_ns = base_host.now();
  r->body = base_str(body);
  faulty_record(self, r, body);
}

static driftd_status make_mark(driftd_call call, base_run* at, uint32_t type, const char* kind, const char* cursor) {
  const uint64_t count = type == DRIFTD_MARK_COMPLETE ? at->next : 0;
  driftd_mark mark = {
      .size = sizeof mark, .type = type, .kind = base_str(kind), .cursor = base_str(cursor), .count = count};
  faulty_mark(&mark);
  const driftd_status answer = base_host.mark(call, &mark);
  at->stopped |= answer == DRIFTD_FINISH_SOON;
  return answer > DRIFTD_OK ? refused(call, answer) : DRIFTD_OK;
}

static driftd_status list_page(base_instance* self, driftd_call call, base_run* at) {
  driftd_record records[kPage];
  char ids[kPage][32];
  char bodies[kPage][kBody];
  char cursor[kCursor];
  uint32_t n = 0;
  for (; n < kPage && at->next + n < self->count[at->kind]; ++n)
    fill(self, (int)at->kind, at->next + n, &records[n], ids[n], bodies[n]);
  const driftd_status answer = n == 0 ? DRIFTD_OK : base_host.emit(call, records, n, sizeof records[0]);
  at->stopped = answer == DRIFTD_FINISH_SOON;
  if (answer > DRIFTD_OK) return refused(call, answer);
  at->next += n;
  snprintf(cursor, sizeof cursor, "pos:%u:%u:%u", at->scope, at->kind, at->next);
  return make_mark(call, at, DRIFTD_MARK_CHECKPOINT, "", cursor);
}

static driftd_status list_kind(base_instance* self, driftd_call call, base_run* at) {
  const int whole = at->next == 0;
  driftd_status status;
  do {
    status = base_may_go_on(call);
    if (status == DRIFTD_OK) status = list_page(self, call, at);
  } while (status == DRIFTD_OK && !at->stopped && at->next < self->count[at->kind]);
  if (status != DRIFTD_OK || !whole || at->next < self->count[at->kind]) return status;
  return make_mark(call, at, DRIFTD_MARK_COMPLETE, kKindNames[at->kind], "");
}

static unsigned scope_of(driftd_call call, const driftd_refresh_args* args) {
  unsigned scope = args->kind_count == 0 ? (1u << kKinds) - 1 : 0;
  for (uint32_t i = 0; i < args->kind_count; ++i) {
    unsigned kind = 0;
    while (kind < kKinds && !base_is(args->kinds[i], kKindNames[kind])) ++kind;
    if (kind == kKinds) base_fail(call, DRIFTD_INVALID, "a kind that describe does not name");
    if (kind < kKinds) scope |= 1u << kind;
  }
  return scope;
}

/* Returns 0 if the cursor is not one of ours. */
int base_parse_cursor(const base_instance* self, driftd_str cursor, base_run* at) {
  char text[kCursor] = {0};
  char again[kCursor];
  unsigned scope = 0;
  if (cursor.len == 0) return 1;
  if (cursor.len >= sizeof text) return 0;
  memcpy(text, cursor.data, cursor.len);
  if (sscanf(text, "pos:%u:%u:%u", &scope, &at->kind, &at->next) != 3) return 0;
  snprintf(again, sizeof again, "pos:%u:%u:%u", scope, at->kind, at->next);
  const int known = scope == at->scope && at->kind < kKinds && (scope >> at->kind & 1) != 0;
  return base_is(cursor, again) && known && at->next <= self->count[at->kind];
}

static void count_bytes(void* user, const uint8_t* data, uint64_t len) {
  (void)data;
  *(uint64_t*)user = len;
}

static driftd_status log_in(base_instance* self, driftd_call call) {
  uint64_t bytes = 0;
  if (self->token[0] == 0) return DRIFTD_OK;
  if (base_host.secret(call, base_str(self->token), count_bytes, &bytes) == DRIFTD_OK) return DRIFTD_OK;
  return base_fail(call, DRIFTD_UNAUTHENTICATED, "settings.password was not resolved; configure it as a secret");
}

driftd_status base_refresh(driftd_instance given, driftd_call call, const driftd_refresh_args* args,
                           driftd_refresh_result* result) {
  base_instance* self = given;
  base_run at = {scope_of(call, args), 0, 0, 0};
  const int full = (args->flags & DRIFTD_REFRESH_FULL) != 0;
  if (!full && !base_parse_cursor(self, args->cursor, &at))
    return base_fail(call, DRIFTD_CURSOR_EXPIRED, "the cursor is not of this listing; refresh without one");
  driftd_status status = log_in(self, call);
  if (!full && args->cursor.len > 0 && at.scope >> (at.kind + 1) == 0 && at.next == self->count[at.kind]) {
    result->unchanged = status == DRIFTD_OK;
    return status;
  }
  for (; status == DRIFTD_OK && !at.stopped && at.kind < kKinds; ++at.kind) {
    if ((at.scope >> at.kind & 1) == 0) continue;
    status = list_kind(self, call, &at);
    if (!at.stopped) at.next = 0;
  }
  if (status == DRIFTD_OK) base_host.metric(call, base_str("things"), self->count[kTopics] + self->count[kRoles]);
  return status;
}

/* Reads an identity of the host, whatever its minor version. */
static driftd_identity adopt(const void* given) {
  driftd_identity asked = {0};
  uint32_t size;
  memcpy(&size, given, sizeof size);
  memcpy(&asked, given, size < sizeof asked ? size : sizeof asked);
  return asked;
}

static driftd_status read_one(base_instance* self, driftd_call call, const driftd_identity* asked) {
  char id[32];
  char body[kBody];
  driftd_record record;
  for (unsigned i = 0; asked->backend.len == 0 && i < kKinds * 1000; ++i) {
    if (i % 1000 >= self->count[i / 1000] || !base_is(asked->kind, kKindNames[i / 1000])) continue;
    snprintf(id, sizeof id, "%s-%03u", kKindNames[i / 1000], i % 1000);
    if (!base_is(asked->id, id)) continue;
    fill(self, (int)i / 1000, i % 1000, &record, id, body);
    const driftd_status answer = base_host.emit(call, &record, 1, sizeof record);
    return answer > DRIFTD_OK ? refused(call, answer) : DRIFTD_OK;
  }
  const driftd_diagnostic gone = {.size = sizeof gone,
                                  .code = DRIFTD_NOT_FOUND,
                                  .kind = asked->kind,
                                  .id = asked->id,
                                  .text = base_str("it is not there"),
                                  .backend = asked->backend};
  base_host.diag(call, &gone);
  return DRIFTD_OK;
}

driftd_status base_read(driftd_instance self, driftd_call call, const driftd_identity* ids, uint32_t count,
                        uint32_t stride) {
  driftd_status status = log_in(self, call);
  for (uint32_t n = 0; status == DRIFTD_OK && n < count; ++n) {
    const driftd_identity asked = adopt((const char*)ids + (size_t)n * stride);
    status = base_may_go_on(call);
    if (status == DRIFTD_OK) status = read_one(self, call, &asked);
  }
  return status;
}
