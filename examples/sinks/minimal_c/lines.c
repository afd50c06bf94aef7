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
static driftd_status fail(driftd_call call, driftd_status code, driftd_str why) {
  const driftd_diagnostic out = {.size = sizeof out, .code = code, .text = why};
  host->diag(call, &out);
  return code;
}

/* The host has checked the settings against the schema. The instance is the address, which no call changes. */
static driftd_status open_sink(driftd_call call, const driftd_sink_open_args* args, driftd_instance* out) {
  cJSON* settings = cJSON_ParseWithLength(args->settings.data, args->settings.len);
  const char* path = cJSON_GetStringValue(cJSON_GetObjectItem(settings, "socket"));
  struct sockaddr_un* address = calloc(1, sizeof *address);
  const int fits = address != NULL && path != NULL && strlen(path) < sizeof address->sun_path;
  if (fits) *address = (struct sockaddr_un){.sun_family = AF_UNIX};
  if (fits) strcpy(address->sun_path, path);
  cJSON_Delete(settings);
  if (fits) return *out = address, DRIFTD_OK;
  free(address);
  return fail(call, DRIFTD_INVALID, TEXT("settings.socket: expected a path of at most 107 bytes"));
}

/* Does not block: if the program accepts no more connections, it counts as away. */
static int connect_to(const struct sockaddr_un* address) {
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd >= 0 && connect(fd, (const struct sockaddr*)address, sizeof *address) == 0) return fd;
  if (fd >= 0) close(fd);
  return -1;
}

/* Sends (POLLOUT) or receives (POLLIN) all bytes. 0: the connection ended, or the host wants the call to end. */
static int move(driftd_call call, int fd, short events, char* data, size_t len) {
  struct pollfd on[2] = {{fd, events, 0}, {host->cancel_fd(call), POLLIN, 0}};
  while (len > 0 && !host->cancelled(call)) {
    if (poll(on, 2, 1000) <= 0 || on[0].revents == 0) continue;
    const ssize_t moved = events == POLLOUT ? send(fd, data, len, MSG_NOSIGNAL) : recv(fd, data, len, 0);
    if (moved <= 0) return 0;
    data += moved;
    len -= (size_t)moved;
  }
  return len == 0;
}

static driftd_status deliver(driftd_instance address, driftd_call call, const driftd_batch* batch) {
  const int fd = connect_to(address);
  int open = fd >= 0;
  for (uint32_t i = 0; open && i < batch->event_count; ++i) {
    /* by the host's stride: its struct may be longer than ours */
    const driftd_event* event = (const void*)((const char*)batch->events + (size_t)i * batch->event_stride);
    char byte = '\n';
    int ok = 1;
    size_t n = 0;
    open = move(call, fd, POLLOUT, (char*)event->body.data, event->body.len) && move(call, fd, POLLOUT, &byte, 1);
    do {
      open = open && move(call, fd, POLLIN, &byte, 1);
      ok = ok && n < 3 && byte == "ok\n"[n++];
    } while (open && byte != '\n');
    if (!open) break;
    const driftd_settlement verdict = {sizeof verdict,
                                       i,
                                       ok ? DRIFTD_OUTCOME_DELIVERED : DRIFTD_OUTCOME_PERMANENT,
                                       0,
                                       0,
                                       ok ? TEXT("") : TEXT("the program at settings.socket refused it")};
    open = host->settle(call, &verdict, 1, sizeof verdict) == DRIFTD_OK;
  }
  if (fd >= 0) close(fd);
  return open ? DRIFTD_OK : fail(call, DRIFTD_UNAVAILABLE, TEXT("settings.socket: no connection, or it ended"));
}

static driftd_status probe(driftd_instance address, driftd_call call, driftd_health_fn push, void* user) {
  const int fd = connect_to(address);
  driftd_health health = {.size = sizeof health, .state = DRIFTD_HEALTH_UP};
  if (fd < 0) health.state = DRIFTD_HEALTH_DOWN, health.reason = TEXT("nobody listens at settings.socket");
  if (fd >= 0) close(fd);
  push(user, &health);
  return (void)call, DRIFTD_OK;
}

static driftd_status flush(driftd_instance self, driftd_call call) {
  return (void)self, (void)call, DRIFTD_UNSUPPORTED;
}
static void wake(driftd_instance self) { (void)self; } /* every wait looks at cancel_fd */
static const void* query(driftd_str id, uint32_t revision) { return (void)id, (void)revision, NULL; }

driftd_status driftd_sink_v1(const driftd_sink_host_table* given, const driftd_offer* offer, driftd_sink_accept* out) {
  static const driftd_sink_table table = {sizeof table, 0,     describe, schema, open_sink, deliver,
                                          probe,        flush, wake,     free,   query};
  (void)offer; /* minor_needed is 0: any host of this major will do */
  host = given;
  out->minor_built = DRIFTD_SINK_ABI_MINOR;
  out->table = &table;
  return DRIFTD_OK;
}
