/* SPDX-License-Identifier: Apache-2.0 */
/* These describe themselves wrongly, or push texts that cannot be read. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base.h"

#define REFRESH                                                                                         \
  driftd_status faulty_refresh(driftd_instance self, driftd_call call, const driftd_refresh_args* args, \
                               driftd_refresh_result* result)
#define ROLE "{\"schema\":\"driftd-schema/1\",\"kind\":\"role\",\"title\":\"a role\","

/* Replaces the body of the first role. */
__attribute__((unused)) static void give(driftd_record* record, const char* body) {
  if (base_is(record->id, "role-000")) record->body = base_str(body);
}

#if defined(FAULTY_describe_crashes)
driftd_status faulty_describe(driftd_push_fn push, void* user) {
  (void)push, (void)user;
  abort();
}

#elif defined(FAULTY_bad_describe)
driftd_status faulty_describe(driftd_push_fn push, void* user) {
  return base_push(push, user, "{\"id\":\"bad_describe\",\"version\":1,\"types\":\"none\"}");
}

#elif defined(FAULTY_other_schema_each_time)
driftd_status faulty_schema(driftd_str what, driftd_push_fn push, void* user) {
  static int revision;
  char text[256];
  if (!base_is(what, "role")) return base_schema(what, push, user);
  snprintf(text, sizeof text, ROLE "\"revision\":%d,\"attributes\":{\"login\":{\"type\":\"bool\"},\"limit\":{}}}",
           ++revision);
  return base_push(push, user, text);
}

#elif defined(FAULTY_bad_settings_schema)
driftd_status faulty_schema(driftd_str what, driftd_push_fn push, void* user) {
  if (!base_is(what, "settings")) return base_schema(what, push, user);
  return base_push(push, user, "{\"type\":\"objekt\",\"properties\":[\"count\"]}");
}

#elif defined(FAULTY_bad_schema)
driftd_status faulty_schema(driftd_str what, driftd_push_fn push, void* user) {
  return base_is(what, "role") ? base_push(push, user, ROLE "\"atributes\":{}}") : base_schema(what, push, user);
}

#elif defined(FAULTY_meaningless_schema)
driftd_status faulty_schema(driftd_str what, driftd_push_fn push, void* user) {
  if (!base_is(what, "role")) return base_schema(what, push, user);
  return base_push(push, user,
                   ROLE
                   "\"attributes\":{\"login\":{\"type\":\"bool\"},\"limit\":{\"type\":\"int\",\"unit\":\"parsecs\"}}}");
}

#elif defined(FAULTY_schema_of_anything)
driftd_status faulty_schema(driftd_str what, driftd_push_fn push, void* user) {
  const driftd_status status = base_schema(what, push, user);
  return status == DRIFTD_NOT_FOUND ? base_schema(base_str("role"), push, user) : status;
}

#elif defined(FAULTY_nan_body)
void faulty_record(base_instance* self, driftd_record* record, char* body) {
  (void)self, (void)body;
  give(record, "{\"login\":true,\"limit\":NaN}");
}

#elif defined(FAULTY_huge_body)
void faulty_record(base_instance* self, driftd_record* record, char* body) {
  static char huge[5 << 20];
  (void)self, (void)body;
  memset(huge, ' ', sizeof huge);
  huge[0] = '{';
  huge[sizeof huge - 1] = '}';
  if (base_is(record->id, "role-000")) record->body = (driftd_str){huge, sizeof huge};
}

#elif defined(FAULTY_undeclared_kind)
void faulty_record(base_instance* self, driftd_record* record, char* body) {
  (void)self, (void)body;
  if (base_is(record->id, "role-000")) record->kind = base_str("ghost");
}

#elif defined(FAULTY_invalid_utf8)
void faulty_record(base_instance* self, driftd_record* record, char* body) {
  (void)self, (void)body;
  if (base_is(record->id, "role-000")) record->id = base_str("role-\xc3\x28");
}

#elif defined(FAULTY_huge_text)
REFRESH {
  static char huge[16 << 20];
  memset(huge, 'x', sizeof huge);
  const driftd_diagnostic d = {.size = sizeof d,
                               .code = DRIFTD_DENIED,
                               .kind = base_str("role"),
                               .path = base_str("limit"),
                               .text = {huge, sizeof huge}};
  const driftd_status status = base_refresh(self, call, args, result);
  base_host.log(call, DRIFTD_LOG_WARN, d.text, NULL, 0);
  base_host.diag(call, &d);
  return status;
}

#elif defined(FAULTY_null_text) /* a NULL pointer with a length */
void faulty_record(base_instance* self, driftd_record* record, char* body) {
  (void)self, (void)body;
  if (base_is(record->id, "role-000")) record->body = (driftd_str){NULL, 20};
}

#elif defined(FAULTY_null_log)
REFRESH {
  const driftd_diagnostic d = {.size = sizeof d, .code = DRIFTD_DENIED, .kind = base_str("role"), .text = {NULL, 99}};
  const driftd_status status = base_refresh(self, call, args, result);
  base_host.log(call, DRIFTD_LOG_WARN, (driftd_str){NULL, 99}, NULL, 3);
  base_host.diag(call, &d);
  return status;
}

#elif defined(FAULTY_undeclared_attribute)
void faulty_record(base_instance* self, driftd_record* record, char* body) {
  (void)self, (void)body;
  give(record, "{\"login\":true,\"limit\":0,\"surprise\":1}");
}

#elif defined(FAULTY_bad_unread)
void faulty_record(base_instance* self, driftd_record* record, char* body) {
  static const driftd_unread kUnread = {sizeof kUnread, DRIFTD_DENIED, {"a..b[", 5}, {NULL, 0}};
  (void)self, (void)body;
  record->unread = &kUnread;
  record->unread_count = 1;
  record->unread_stride = sizeof kUnread;
}

#elif defined(FAULTY_settings_crash)
driftd_status faulty_open(driftd_call call, const driftd_open_args* args, driftd_instance* out) {
  const driftd_status status = base_open(call, args, out);
  if (status == DRIFTD_OK && ((base_instance*)*out)->count[kTopics] != kDefaultTopics) abort();
  return status;
}

#elif defined(FAULTY_mute_failure)
REFRESH {
  (void)self, (void)call, (void)args, (void)result;
  return DRIFTD_UNAVAILABLE;
}

#elif defined(FAULTY_unknown_status)
REFRESH {
  (void)self, (void)args, (void)result;
  base_fail(call, DRIFTD_INTERNAL, "something is wrong");
  return 4711;
}

#elif defined(FAULTY_undeclared_metric)
REFRESH {
  base_host.metric(call, base_str("undeclared"), 1);
  return base_refresh(self, call, args, result);
}

#elif defined(FAULTY_nan_metric)
REFRESH {
  const driftd_status status = base_refresh(self, call, args, result);
  base_host.metric(call, base_str("things"), NAN);
  return status;
}
#endif
