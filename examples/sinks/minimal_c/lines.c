/* SPDX-License-Identifier: Apache-2.0 */
/* The smallest useful sink plugin in C: it writes each event as one line of JSON to a Unix socket. The program at the
 * other end answers each line, in order, with a line: `ok` if it has stored the event, anything else if it refuses it
 * for good. */
#include <cjson/cJSON.h>
#include <driftd/sink.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define TEXT(literal) ((driftd_str){literal, sizeof(literal) - 1})

static const driftd_sink_host_table* host;

/* One opened sink. It does not change after open, so its calls may run at the same time. */
typedef struct sink {
  struct sockaddr_un address;
} sink;

static driftd_status describe(driftd_push_fn push, void* user) {
  push(user, TEXT("{\"id\": \"lines\", \"version\": \"0.1.0\", \"title\": \"JSON lines to a Unix socket\","
                  " \"bodies\": [\"application/cloudevents+json\"], \"batch\": {\"events\": 64}}"));
  return DRIFTD_OK;
}

static driftd_status schema(driftd_str what, driftd_push_fn push, void* user) {
  if (what.len != 8 || memcmp(what.data, "settings", 8) != 0) return DRIFTD_NOT_FOUND;
  push(user, TEXT("{\"type\": \"object\", \"required\": [\"socket\"], \"additionalProperties\": false,"
                  " \"properties\": {\"socket\": {\"type\": \"string\", \"format\": \"socket\"}}}"));
  return DRIFTD_OK;
}

/* Says why the call fails; `return fail(...)` ends it. Events that are not settled are retried. */
static driftd_status fail(driftd_call call, driftd_status code, const char* why) {
  driftd_diagnostic out = {.size = sizeof out, .code = code, .text = {why, strlen(why)}};
  host->diag(call, &out);
  return code;
}

/* The host has checked the settings against the schema: there is a text `socket`. */
static driftd_status open_sink(driftd_call call, const driftd_sink_open_args* args, driftd_instance* out) {
  cJSON* settings = cJSON_ParseWithLength(args->settings.data, args->settings.len);
  const char* path = cJSON_GetStringValue(cJSON_GetObjectItem(settings, "socket"));
  sink* made = calloc(1, sizeof *made);
  const int fits = made != NULL && path != NULL && strlen(path) < sizeof made->address.sun_path;
  if (fits) strcpy(made->address.sun_path, path);
  cJSON_Delete(settings);
  if (!fits) free(made);
  if (!fits) return fail(call, DRIFTD_INVALID, "settings.socket: expected a path of at most 107 bytes");
  made->address.sun_family = AF_UNIX;
  *out = made;
  return DRIFTD_OK;
}

static int connect_to(const sink* self) {
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd >= 0 && connect(fd, (const struct sockaddr*)&self->address, sizeof self->address) == 0) return fd;
  if (fd >= 0) close(fd);
  return -1;
}

/* Waits until the socket is readable or writable; 0 if the host wants the call to end. */
static int wait_for(driftd_call call, int fd, short events) {
  struct pollfd on[2] = {{fd, events, 0}, {host->cancel_fd(call), POLLIN, 0}};
  while (!host->cancelled(call)) {
    if (poll(on, 2, 1000) > 0 && on[0].revents != 0) return 1;
  }
  return 0;
}

static int send_all(driftd_call call, int fd, const char* data, size_t len) {
  while (len > 0) {
    if (!wait_for(call, fd, POLLOUT)) return 0;
    const ssize_t sent = send(fd, data, len, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent <= 0) return 0;
    data += sent;
    len -= (size_t)sent;
  }
  return 1;
}

/* Reads one answer. 1: `ok`, 0: something else, -1: the connection ended or the host wants the call to end. */
static int read_answer(driftd_call call, int fd) {
  char line[64];
  size_t len = 0;
  for (;;) {
    char byte;
    if (!wait_for(call, fd, POLLIN) || recv(fd, &byte, 1, 0) != 1) return -1;
    if (byte == '\n') return len == 2 && memcmp(line, "ok", 2) == 0;
    if (len < sizeof line) line[len++] = byte;
  }
}

static driftd_status deliver(driftd_instance instance, driftd_call call, const driftd_batch* batch) {
  const int fd = connect_to(instance);
  if (fd < 0) return fail(call, DRIFTD_UNAVAILABLE, "nobody listens at settings.socket");
  driftd_status status = DRIFTD_OK;
  for (uint32_t i = 0; i < batch->event_count && status == DRIFTD_OK; ++i) {
    /* by the host's stride: its struct may be longer than ours */
    const driftd_event* event = (const void*)((const char*)batch->events + (size_t)i * batch->event_stride);
    const int sent = send_all(call, fd, event->body.data, event->body.len) && send_all(call, fd, "\n", 1);
    const int answer = sent ? read_answer(call, fd) : -1;
    if (answer < 0) status = fail(call, DRIFTD_UNAVAILABLE, "the program at settings.socket ended the connection");
    if (answer < 0) break;
    driftd_settlement verdict = {.size = sizeof verdict, .index = i, .outcome = DRIFTD_OUTCOME_DELIVERED};
    if (answer == 0) verdict.outcome = DRIFTD_OUTCOME_PERMANENT;
    if (answer == 0) verdict.detail = TEXT("the program at settings.socket refused it");
    status = host->settle(call, &verdict, 1, sizeof verdict);
  }
  close(fd);
  return status;
}

static driftd_status probe(driftd_instance instance, driftd_call call, driftd_health_fn push, void* user) {
  const int fd = connect_to(instance);
  driftd_health health = {.size = sizeof health, .state = fd < 0 ? DRIFTD_HEALTH_DOWN : DRIFTD_HEALTH_UP};
  if (fd < 0) health.reason = TEXT("nobody listens at settings.socket");
  if (fd >= 0) close(fd);
  push(user, &health);
  return (void)call, DRIFTD_OK;
}

static driftd_status flush(driftd_instance self, driftd_call call) {
  return (void)self, (void)call, DRIFTD_UNSUPPORTED;
}
static void wake(driftd_instance self) { (void)self; } /* every wait looks at cancel_fd */
static void close_sink(driftd_instance self) { free(self); }
static const void* query(driftd_str id, uint32_t revision) { return (void)id, (void)revision, NULL; }

driftd_status driftd_sink_v1(const driftd_sink_host_table* given, const driftd_offer* offer, driftd_sink_accept* out) {
  static const driftd_sink_table table = {sizeof table, 0,     describe, schema,     open_sink, deliver,
                                          probe,        flush, wake,     close_sink, query};
  (void)offer; /* minor_needed is 0: any host of this major will do */
  host = given;
  out->minor_built = DRIFTD_SINK_ABI_MINOR;
  out->table = &table;
  return DRIFTD_OK;
}
