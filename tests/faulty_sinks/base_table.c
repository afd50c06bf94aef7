/* SPDX-License-Identifier: Apache-2.0 */
/* The sound sink's table: describe, schema, open, probe, and the weak functions. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base.h"

#define WEAK __attribute__((weak))
#define AS_BASE(type, name, parameters, arguments) \
  WEAK type faulty_##name parameters { return base_##name arguments; }

driftd_sink_host_table base_host;

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

driftd_status base_describe(driftd_push_fn push, void* user) {
  char text[400];
  snprintf(text, sizeof text,
           "{\"id\":\"%s\",\"version\":\"1.0\",\"title\":\"Lines over TCP\",\"bodies\":[\"%s\"],"
           "\"batch\":{\"events\":%d,\"bytes\":1048576},\"concurrency\":%d,\"flush\":true}",
           base_name, DRIFTD_BODY_CLOUDEVENTS_JSON, kBatch, kConcurrency);
  return base_push(push, user, text);
}

driftd_status base_schema(driftd_str what, driftd_push_fn push, void* user) {
  if (!base_is(what, "settings")) return DRIFTD_NOT_FOUND;
  return base_push(push, user,
                   "{\"type\":\"object\",\"additionalProperties\":false,\"required\":[\"address\"],\"properties\":{"
                   "\"address\":{\"type\":\"string\"},\"password\":{\"type\":\"string\",\"writeOnly\":true}}}");
}

int base_setting(driftd_str json, const char* key, driftd_str* value) {
  int is_key = 0; /* the string before the last colon is the wanted key */
  for (uint64_t i = 0; i < json.len; ++i) {
    const uint64_t begin = i;
    if (json.data[i] != '"') continue;
    for (++i; i < json.len && json.data[i] != '"'; ++i) i += json.data[i] == '\\';
    *value = (driftd_str){json.data + begin + 1, (i < json.len ? i : json.len) - begin - 1};
    if (is_key) return 1;
    is_key = base_is(*value, key) && i + 1 < json.len && json.data[i + 1] == ':';
  }
  return 0;
}

int base_read_settings(base_sink* self, driftd_str settings) {
  static const char host[] = "127.0.0.1:";
  driftd_str value;
  char digits[6] = {0};
  if (settings.len < 2 || settings.data[0] != '{' || settings.data[settings.len - 1] != '}') return 0;
  if (!base_setting(settings, "address", &value)) return 0;
  if (value.len <= strlen(host) || value.len - strlen(host) >= sizeof digits) return 0;
  if (memcmp(value.data, host, strlen(host)) != 0) return 0;
  memcpy(digits, value.data + strlen(host), value.len - strlen(host));
  self->port = atoi(digits);
  if (strspn(digits, "0123456789") != strlen(digits) || self->port < 1 || self->port > 65535) return 0;
  if (base_setting(settings, "password", &value)) {
    if (value.len >= sizeof self->token) return 0;
    memcpy(self->token, value.data, value.len);
  }
  return 1;
}

driftd_status base_open(driftd_call call, const driftd_sink_open_args* args, driftd_instance* out) {
  base_sink* self = calloc(1, sizeof *self);
  if (self == NULL) return base_fail(call, DRIFTD_INTERNAL, "out of memory");
  if (!base_read_settings(self, args->settings)) {
    free(self);
    return base_fail(call, DRIFTD_INVALID, "settings.address: expected 127.0.0.1:PORT");
  }
  self->nudge = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (self->nudge < 0) {
    free(self);
    return base_fail(call, DRIFTD_UNAVAILABLE, "no descriptor is left; raise the limit of open files");
  }
  *out = self;
  return DRIFTD_OK;
}

driftd_status base_probe(driftd_instance given, driftd_call call, driftd_health_fn push, void* user) {
  const base_sink* self = given;
  const driftd_status status = base_may_go_on(call);
  if (status != DRIFTD_OK) return status;
  const int fd = base_connect(self->port, call, 700);
  driftd_health health = {.size = sizeof health, .state = fd >= 0 ? DRIFTD_HEALTH_UP : DRIFTD_HEALTH_DOWN};
  if (fd < 0) health.reason = base_str("no connection to the receiver");
  if (fd >= 0) close(fd);
  push(user, &health);
  return DRIFTD_OK;
}

driftd_status base_flush(driftd_instance self, driftd_call call) {
  (void)self; /* the receiver answers when an event is durable */
  return base_may_go_on(call);
}

void base_wake(driftd_instance given) {
  const base_sink* self = given;
  (void)!eventfd_write(self->nudge, 1); /* it fails if the counter is full: then it is readable already */
}

void base_close(driftd_instance given) {
  base_sink* self = given;
  close(self->nudge);
  free(self);
}

const void* base_query(driftd_str id, uint32_t revision) {
  (void)id, (void)revision;
  return NULL;
}

driftd_status base_entry(const driftd_sink_host_table* host, const driftd_offer* offer, driftd_sink_accept* out) {
  static const driftd_sink_table table = {
      sizeof table, 0,           faulty_describe, faulty_schema, faulty_open, faulty_deliver, faulty_probe,
      faulty_flush, faulty_wake, faulty_close,    faulty_query};
  (void)offer;
  memcpy(&base_host, host, host->size < sizeof base_host ? host->size : sizeof base_host);
  const driftd_sink_accept answer = {.size = out->size, .minor_built = DRIFTD_SINK_ABI_MINOR, .table = &table};
  memcpy(out, &answer, out->size < sizeof answer ? out->size : sizeof answer);
  return DRIFTD_OK;
}

AS_BASE(driftd_status, entry, (const driftd_sink_host_table* host, const driftd_offer* offer, driftd_sink_accept* out),
        (host, offer, out))
AS_BASE(driftd_status, describe, (driftd_push_fn push, void* user), (push, user))
AS_BASE(driftd_status, schema, (driftd_str what, driftd_push_fn push, void* user), (what, push, user))
AS_BASE(driftd_status, open, (driftd_call call, const driftd_sink_open_args* args, driftd_instance* out),
        (call, args, out))
AS_BASE(driftd_status, deliver, (driftd_instance self, driftd_call call, const driftd_batch* batch),
        (self, call, batch))
AS_BASE(driftd_status, probe, (driftd_instance self, driftd_call call, driftd_health_fn push, void* user),
        (self, call, push, user))
AS_BASE(driftd_status, flush, (driftd_instance self, driftd_call call), (self, call))
AS_BASE(const void*, query, (driftd_str id, uint32_t revision), (id, revision))
AS_BASE(int, send, (base_sink * self, driftd_call call, int fd, const driftd_event* event), (self, call, fd, event))
WEAK void faulty_wake(driftd_instance self) { base_wake(self); }
WEAK void faulty_close(driftd_instance self) { base_close(self); }
WEAK void faulty_settle(driftd_call call, uint32_t index, uint32_t outcome, const char* detail) {
  base_settle(call, index, outcome, detail);
}

DRIFTD_EXPORT driftd_status driftd_sink_v1(const driftd_sink_host_table* host, const driftd_offer* offer,
                                           driftd_sink_accept* out) {
  return faulty_entry(host, offer, out);
}
