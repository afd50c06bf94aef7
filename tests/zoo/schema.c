/* SPDX-License-Identifier: Apache-2.0 */
/* Says of itself what is not so, or says it in words that nobody can read. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base.h"

#define REFRESH                                                                                         \
  driftd_status animal_refresh(driftd_instance self, driftd_call call, const driftd_refresh_args* args, \
                               driftd_refresh_result* result)
#define ROLE "{\"schema\":\"driftd-schema/1\",\"kind\":\"role\",\"title\":\"a role\","

/* Another body for the first role. */
__attribute__((unused)) static void give(driftd_record* record, const char* body) {
  if (zoo_is(record->id, "role-000")) record->body = zoo_str(body);
}

#if defined(ZOO_describe_crashes)
driftd_status animal_describe(driftd_push_fn push, void* user) {
  (void)push, (void)user;
  abort();
}

#elif defined(ZOO_bad_describe)
driftd_status animal_describe(driftd_push_fn push, void* user) {
  return zoo_push(push, user, "{\"id\":\"bad_describe\",\"version\":1,\"types\":\"none\"}");
}

#elif defined(ZOO_other_schema_each_time)
driftd_status animal_schema(driftd_str what, driftd_push_fn push, void* user) {
  static int revision;
  char text[256];
  if (!zoo_is(what, "role")) return base_schema(what, push, user);
  snprintf(text, sizeof text, ROLE "\"revision\":%d,\"attributes\":{\"login\":{\"type\":\"bool\"},\"limit\":{}}}",
           ++revision);
  return zoo_push(push, user, text);
}

#elif defined(ZOO_bad_settings_schema)
driftd_status animal_schema(driftd_str what, driftd_push_fn push, void* user) {
  if (!zoo_is(what, "settings")) return base_schema(what, push, user);
  return zoo_push(push, user, "{\"type\":\"objekt\",\"properties\":[\"count\"]}");
}

#elif defined(ZOO_bad_schema)
driftd_status animal_schema(driftd_str what, driftd_push_fn push, void* user) {
  return zoo_is(what, "role") ? zoo_push(push, user, ROLE "\"atributes\":{}}") : base_schema(what, push, user);
}

#elif defined(ZOO_schema_of_anything)
driftd_status animal_schema(driftd_str what, driftd_push_fn push, void* user) {
  const driftd_status status = base_schema(what, push, user);
  return status == DRIFTD_NOT_FOUND ? base_schema(zoo_str("role"), push, user) : status;
}

#elif defined(ZOO_nan_body)
void animal_record(zoo_instance* self, driftd_record* record, char* body) {
  (void)self, (void)body;
  give(record, "{\"login\":true,\"limit\":NaN}");
}

#elif defined(ZOO_huge_body)
void animal_record(zoo_instance* self, driftd_record* record, char* body) {
  static char huge[5 << 20];
  (void)self, (void)body;
  memset(huge, ' ', sizeof huge);
  huge[0] = '{';
  huge[sizeof huge - 1] = '}';
  if (zoo_is(record->id, "role-000")) record->body = (driftd_str){huge, sizeof huge};
}

#elif defined(ZOO_undeclared_kind)
void animal_record(zoo_instance* self, driftd_record* record, char* body) {
  (void)self, (void)body;
  if (zoo_is(record->id, "role-000")) record->kind = zoo_str("ghost");
}

#elif defined(ZOO_invalid_utf8)
void animal_record(zoo_instance* self, driftd_record* record, char* body) {
  (void)self, (void)body;
  if (zoo_is(record->id, "role-000")) record->id = zoo_str("role-\xc3\x28");
}

#elif defined(ZOO_huge_text)
REFRESH {
  static char huge[16 << 20];
  memset(huge, 'x', sizeof huge);
  const driftd_diagnostic d = {.size = sizeof d,
                               .code = DRIFTD_DENIED,
                               .kind = zoo_str("role"),
                               .path = zoo_str("limit"),
                               .text = {huge, sizeof huge}};
  const driftd_status status = base_refresh(self, call, args, result);
  zoo_host.log(call, DRIFTD_LOG_WARN, d.text, NULL, 0);
  zoo_host.diag(call, &d);
  return status;
}

#elif defined(ZOO_null_text) /* NULL, with a length */
void animal_record(zoo_instance* self, driftd_record* record, char* body) {
  (void)self, (void)body;
  if (zoo_is(record->id, "role-000")) record->body = (driftd_str){NULL, 20};
}

#elif defined(ZOO_null_log)
REFRESH {
  const driftd_diagnostic d = {.size = sizeof d, .code = DRIFTD_DENIED, .kind = zoo_str("role"), .text = {NULL, 99}};
  const driftd_status status = base_refresh(self, call, args, result);
  zoo_host.log(call, DRIFTD_LOG_WARN, (driftd_str){NULL, 99}, NULL, 3);
  zoo_host.diag(call, &d);
  return status;
}

#elif defined(ZOO_undeclared_attribute)
void animal_record(zoo_instance* self, driftd_record* record, char* body) {
  (void)self, (void)body;
  give(record, "{\"login\":true,\"limit\":0,\"surprise\":1}");
}

#elif defined(ZOO_bad_unread)
void animal_record(zoo_instance* self, driftd_record* record, char* body) {
  static const driftd_unread kUnread = {sizeof kUnread, DRIFTD_DENIED, {"a..b[", 5}, {NULL, 0}};
  (void)self, (void)body;
  record->unread = &kUnread;
  record->unread_count = 1;
  record->unread_stride = sizeof kUnread;
}

#elif defined(ZOO_settings_crash)
driftd_status animal_open(driftd_call call, const driftd_open_args* args, driftd_instance* out) {
  const driftd_status status = base_open(call, args, out);
  if (status == DRIFTD_OK && ((zoo_instance*)*out)->count[kTopics] != kDefaultTopics) abort();
  return status;
}

#elif defined(ZOO_mute_failure)
REFRESH {
  (void)self, (void)call, (void)args, (void)result;
  return DRIFTD_UNAVAILABLE;
}

#elif defined(ZOO_unknown_status)
REFRESH {
  (void)self, (void)args, (void)result;
  zoo_fail(call, DRIFTD_INTERNAL, "something is wrong");
  return 4711;
}

#elif defined(ZOO_undeclared_metric)
REFRESH {
  zoo_host.metric(call, zoo_str("undeclared"), 1);
  return base_refresh(self, call, args, result);
}

#elif defined(ZOO_nan_metric)
REFRESH {
  const driftd_status status = base_refresh(self, call, args, result);
  zoo_host.metric(call, zoo_str("things"), NAN);
  return status;
}
#endif
