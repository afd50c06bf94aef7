/* SPDX-License-Identifier: Apache-2.0 */
/* A sink plugin that sends each event as a line over TCP and reads a line for each: `ok` settles it as delivered, at
 * `bad` it does what its setting `mode` names. So the test's receiver decides when it misbehaves. In mode `keeps` it
 * settles each event at once and sends it in flush, if this version has one. Compiled again with other VERSION, BODY,
 * BATCH and FLUSH it is another version of the same plugin: each refuses for good what it did not ask for. */
#include <arpa/inet.h>
#include <driftd/sink.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define TEXT(literal) ((driftd_str){literal, sizeof(literal) - 1})

#ifndef VERSION
#define VERSION "1.0.0"
#define BODY DRIFTD_BODY_CLOUDEVENTS_JSON
#define BATCH 64
#endif
#ifndef FLUSH
#define FLUSH "true"
#endif
#define TEXT_OF(number) #number
#define NUMBER(number) TEXT_OF(number)

static const driftd_sink_host_table* host;

typedef struct bad_sink {
  int port;
  char mode[32];
  driftd_call stale; /* of the call before */
  char secret[128];  /* what its setting `token` stands for */
  pthread_mutex_t lock;
  char* kept; /* lines that wait for a flush, under the lock */
  size_t kept_size;
  FILE* keeping; /* writes to `kept`; NULL before the first line */
} bad_sink;

static driftd_status describe(driftd_push_fn push, void* user) {
  push(user, TEXT("{\"id\":\"bad_sink\",\"version\":\"" VERSION "\",\"bodies\":[\"application/x-none\",\"" BODY
                  "\"],\"batch\":{\"events\":" NUMBER(BATCH) "},\"concurrency\":4,\"flush\":" FLUSH "}"));
  return DRIFTD_OK;
}

static driftd_status schema(driftd_str what, driftd_push_fn push, void* user) {
  if (what.len != 8 || memcmp(what.data, "settings", 8) != 0) return DRIFTD_NOT_FOUND;
  push(user, TEXT("{\"type\":\"object\",\"additionalProperties\":false,\"required\":[\"port\"],\"properties\":{"
                  "\"port\":{\"type\":\"integer\"},\"mode\":{\"type\":\"string\"},"
                  "\"token\":{\"type\":\"string\",\"writeOnly\":true}}}"));
  return DRIFTD_OK;
}

static void keep_secret(void* user, const uint8_t* data, uint64_t len) {
  snprintf(user, 128, "%.*s", (int)len, (const char*)data);
}

static driftd_status open_sink(driftd_call call, const driftd_sink_open_args* args, driftd_instance* out) {
  bad_sink* self = calloc(1, sizeof *self);
  char text[512];
  if (self == NULL || args->settings.len >= sizeof text) return DRIFTD_INTERNAL;
  pthread_mutex_init(&self->lock, NULL);
  memcpy(text, args->settings.data, args->settings.len);
  text[args->settings.len] = 0;
  const char* port = strstr(text, "\"port\":");
  const char* mode = strstr(text, "\"mode\":\"");
  if (port != NULL) self->port = atoi(port + 7);
  if (mode != NULL) sscanf(mode + 8, "%31[a-z_]", self->mode);
  const char* token = strstr(text, "\"token\":\"");
  char name[128];
  if (token != NULL && sscanf(token + 9, "%127[^\"]", name) == 1)
    host->secret(call, (driftd_str){name, strlen(name)}, &keep_secret, self->secret);
  *out = self;
  return DRIFTD_OK;
}

static void settle(driftd_call call, uint32_t index, uint32_t outcome, const char* detail) {
  driftd_settlement one = {sizeof one, index, outcome, 0, 0, {detail, strlen(detail)}};
  host->settle(call, &one, 1, sizeof one);
}

static void write_garbage(void) {
  char junk[64];
  memset(junk, 0x5a, sizeof junk);
  if (write(3, junk, sizeof junk) < 0) abort(); /* the descriptor of the protocol */
}

static void leak(void) {
  for (;;) {
    char* more = malloc(4 << 20);
    if (more == NULL) continue;
    for (size_t at = 0; at < (4u << 20); at += 4096) *(volatile char*)(more + at) = 1;
    usleep(2000); /* as slow as real leaks are, so that the budget is what ends it */
  }
}

static void* settle_elsewhere(void* call) {
  settle(*(driftd_call*)call, 0, DRIFTD_OUTCOME_DELIVERED, "");
  return NULL;
}

static void misbehave(bad_sink* self, driftd_call call, uint32_t index) {
  const char* mode = self->mode;
  if (strcmp(mode, "segfault") == 0) *(volatile int*)8 = 1;
  if (strcmp(mode, "abort") == 0) abort();
  if (strcmp(mode, "exit") == 0) exit(3);
  if (strcmp(mode, "hang") == 0) {
    for (;;) pause();
  }
  if (strcmp(mode, "spin") == 0) {
    for (volatile unsigned long turns = 0;; ++turns) {
    }
  }
  if (strcmp(mode, "leak") == 0) leak();
  if (strcmp(mode, "garbage") == 0) write_garbage();
  if (strcmp(mode, "twice") == 0) {
    settle(call, index, DRIFTD_OUTCOME_RETRY_EVENT, "refused at first");
    settle(call, index, DRIFTD_OUTCOME_DELIVERED, "");
  }
  if (strcmp(mode, "junk") == 0) {
    settle(call, 1000, DRIFTD_OUTCOME_DELIVERED, "");
    settle(call, index, 99, "");
  }
  if (strcmp(mode, "after_return") == 0) settle(self->stale, index, DRIFTD_OUTCOME_DELIVERED, "");
  if (strcmp(mode, "other_thread") == 0) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, settle_elsewhere, &call) == 0) pthread_join(thread, NULL);
  }
  if (strcmp(mode, "tells_secret") == 0) settle(call, index, DRIFTD_OUTCOME_PERMANENT, self->secret);
  if (strcmp(mode, "permanent") == 0) settle(call, index, DRIFTD_OUTCOME_PERMANENT, "unwanted");
  /* never: no verdict */
}

static int connect_to(int port) {
  struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd >= 0 && connect(fd, (struct sockaddr*)&at, sizeof at) == 0) return fd;
  if (fd >= 0) close(fd);
  return -1;
}

static driftd_status fail_with(driftd_call call, const char* text) {
  driftd_diagnostic why = {.size = sizeof why, .code = DRIFTD_UNAVAILABLE, .text = {text, strlen(text)}};
  host->diag(call, &why);
  return DRIFTD_UNAVAILABLE;
}

/* Refuses for good a batch that this version did not ask for. */
static int is_unwanted(driftd_call call, const driftd_batch* batch) {
  const size_t length = sizeof BODY - 1;
  const driftd_str type = batch->events->content_type;
  if (batch->event_count <= BATCH && type.len == length && memcmp(type.data, BODY, length) == 0) return 0;
  for (uint32_t i = 0; i < batch->event_count; ++i) settle(call, i, DRIFTD_OUTCOME_PERMANENT, "not asked for");
  return 1;
}

static void write_line(FILE* to, const driftd_event* event) {
  fprintf(to, "%.*s %llu %.*s\n", (int)event->order_key.len, event->order_key.data, (unsigned long long)event->sequence,
          (int)event->id.len, event->id.data);
}

/* Settles the events as delivered, although the receiver gets them in flush only. */
static driftd_status keep(bad_sink* self, driftd_call call, const driftd_batch* batch) {
  const char* at = (const char*)batch->events;
  for (uint32_t i = 0; i < batch->event_count; ++i, at += batch->event_stride) {
    pthread_mutex_lock(&self->lock);
    if (self->keeping == NULL) self->keeping = open_memstream(&self->kept, &self->kept_size);
    if (self->keeping == NULL) abort();
    write_line(self->keeping, (const driftd_event*)at);
    pthread_mutex_unlock(&self->lock);
    settle(call, i, DRIFTD_OUTCOME_DELIVERED, "");
  }
  return DRIFTD_OK;
}

static driftd_status deliver(driftd_instance instance, driftd_call call, const driftd_batch* batch) {
  bad_sink* self = instance;
  if (is_unwanted(call, batch)) return DRIFTD_OK;
  if (strcmp(self->mode, "keeps") == 0 && strcmp(FLUSH, "true") == 0) return keep(self, call, batch);
  const int fd = connect_to(self->port);
  if (fd < 0) return fail_with(call, "connection refused");
  FILE* lines = fdopen(fd, "r+");
  if (lines == NULL) return DRIFTD_INTERNAL;
  const char* at = (const char*)batch->events;
  for (uint32_t i = 0; i < batch->event_count; ++i, at += batch->event_stride) {
    write_line(lines, (const driftd_event*)at);
  }
  fflush(lines);
  driftd_status status = DRIFTD_OK;
  for (uint32_t i = 0; i < batch->event_count; ++i) {
    char answer[16];
    if (fgets(answer, sizeof answer, lines) == NULL) {
      status = fail_with(call, "the receiver closed the connection");
      break;
    }
    if (strcmp(answer, "ok\n") == 0) {
      settle(call, i, DRIFTD_OUTCOME_DELIVERED, "");
    } else {
      misbehave(self, call, i);
    }
  }
  fclose(lines);
  self->stale = call;
  return status;
}

static driftd_status probe(driftd_instance instance, driftd_call call, driftd_health_fn push, void* user) {
  (void)call;
  const int fd = connect_to(((bad_sink*)instance)->port);
  driftd_health health = {.size = sizeof health, .state = fd < 0 ? DRIFTD_HEALTH_DOWN : DRIFTD_HEALTH_UP};
  if (fd >= 0) close(fd);
  push(user, &health);
  return DRIFTD_OK;
}

static size_t count_lines(const char* text, size_t size) {
  size_t lines = 0;
  for (size_t i = 0; i < size; ++i) lines += text[i] == '\n';
  return lines;
}

/* Sends what was kept, and drops it if that fails: the host sends it again. */
static driftd_status flush(driftd_instance instance, driftd_call call) {
  bad_sink* self = instance;
  pthread_mutex_lock(&self->lock);
  FILE* keeping = self->keeping;
  self->keeping = NULL;
  if (keeping != NULL) fclose(keeping); /* makes `kept` valid */
  char* kept = self->kept;
  const size_t size = self->kept_size;
  pthread_mutex_unlock(&self->lock);
  if (keeping == NULL) return DRIFTD_OK;
  const int fd = connect_to(self->port);
  FILE* lines = fd < 0 ? NULL : fdopen(fd, "r+");
  size_t left = count_lines(kept, size);
  if (lines != NULL && fwrite(kept, 1, size, lines) == size && fflush(lines) == 0) {
    char answer[16];
    while (left > 0 && fgets(answer, sizeof answer, lines) != NULL && strcmp(answer, "ok\n") == 0) --left;
  }
  free(kept);
  if (lines != NULL) fclose(lines);
  return left == 0 ? DRIFTD_OK : fail_with(call, "the receiver did not take what was kept");
}
static void wake(driftd_instance instance) { (void)instance; }
static void close_sink(driftd_instance instance) { free(instance); }
static const void* query(driftd_str id, uint32_t revision) {
  (void)id;
  (void)revision;
  return NULL;
}

static const driftd_sink_table table = {sizeof table, 0,     describe, schema,     open_sink, deliver,
                                        probe,        flush, wake,     close_sink, query};

driftd_status driftd_sink_v1(const driftd_sink_host_table* from, const driftd_offer* offer, driftd_sink_accept* out) {
  (void)offer;
  host = from;
  out->minor_built = DRIFTD_SINK_ABI_MINOR;
  out->table = &table;
  return DRIFTD_OK;
}
