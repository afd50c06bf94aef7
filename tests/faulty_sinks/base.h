/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sound sink that every faulty sink is based on. It sends each event as one line, `id body`, over TCP and waits for
 * an answer line to each. It passes every check of driftd-check (`sound.so`). Each slot of its table is a weak function
 * faulty_X that calls base_X. A faulty sink defines the function that it gets wrong, and may call base_X for the rest.
 */
#ifndef DRIFTD_FAULTY_SINKS_BASE_H
#define DRIFTD_FAULTY_SINKS_BASE_H

#include <stddef.h>

#include "driftd/sink.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { kBatch = 64, kConcurrency = 4, kOver = -2, kGone = -1 };

typedef struct base_sink {
  int port;
  char token[128]; /* token of the setting `password`; empty if it was not given */
  int nudge;       /* eventfd that wake() writes */
} base_sink;

extern const char base_name[]; /* describe().id */
#ifdef FAULTY_NAME
const char base_name[] = FAULTY_NAME;
#endif
extern driftd_sink_host_table base_host; /* a copy of the host's table */

/* Functions that a faulty sink may define. */
driftd_status faulty_entry(const driftd_sink_host_table* host, const driftd_offer* offer, driftd_sink_accept* out);
driftd_status faulty_describe(driftd_push_fn push, void* user);
driftd_status faulty_schema(driftd_str what, driftd_push_fn push, void* user);
driftd_status faulty_open(driftd_call call, const driftd_sink_open_args* args, driftd_instance* out);
driftd_status faulty_deliver(driftd_instance self, driftd_call call, const driftd_batch* batch);
driftd_status faulty_probe(driftd_instance self, driftd_call call, driftd_health_fn push, void* user);
driftd_status faulty_flush(driftd_instance self, driftd_call call);
void faulty_wake(driftd_instance self);
void faulty_close(driftd_instance self);
const void* faulty_query(driftd_str id, uint32_t revision);
/* Sends one event on a connection and waits for its answer. Returns 0, kGone or kOver. */
int faulty_send(base_sink* self, driftd_call call, int fd, const driftd_event* event);
/* Passes a verdict to the host. */
void faulty_settle(driftd_call call, uint32_t index, uint32_t outcome, const char* detail);

/* Functions that it may call. */
driftd_status base_entry(const driftd_sink_host_table* host, const driftd_offer* offer, driftd_sink_accept* out);
driftd_status base_describe(driftd_push_fn push, void* user);
driftd_status base_schema(driftd_str what, driftd_push_fn push, void* user);
driftd_status base_open(driftd_call call, const driftd_sink_open_args* args, driftd_instance* out);
driftd_status base_deliver(driftd_instance self, driftd_call call, const driftd_batch* batch);
driftd_status base_probe(driftd_instance self, driftd_call call, driftd_health_fn push, void* user);
driftd_status base_flush(driftd_instance self, driftd_call call);
void base_wake(driftd_instance self);
void base_close(driftd_instance self);
const void* base_query(driftd_str id, uint32_t revision);
int base_send(base_sink* self, driftd_call call, int fd, const driftd_event* event);
void base_settle(driftd_call call, uint32_t index, uint32_t outcome, const char* detail);

driftd_str base_str(const char* text);
int base_is(driftd_str given, const char* text);
driftd_status base_push(driftd_push_fn push, void* user, const char* text);
/* Pushes a diagnostic and returns its code. */
driftd_status base_fail(driftd_call call, driftd_status code, const char* text);
/* Pushes a diagnostic and says why the call must end: CANCELLED or DEADLINE. OK if it may go on. */
driftd_status base_may_go_on(driftd_call call);
const driftd_event* base_event(const driftd_batch* batch, uint32_t index);
/* Finds the text of a member of a JSON object. Returns 0 if there is none. */
int base_setting(driftd_str json, const char* key, driftd_str* value);
int base_read_settings(base_sink* self, driftd_str settings);
/* Connects to the port of loopback. Returns a descriptor, kGone or kOver. With call 0 it waits `max_ms` at most. */
int base_connect(int port, driftd_call call, int max_ms);
/* Sends bytes. Returns 0, kGone or kOver. */
int base_write(driftd_call call, int fd, const void* data, size_t len);
/* Sends one line: id, a space, body. */
int base_write_line(driftd_call call, int fd, const driftd_event* event);
/* Waits for one answer line. Returns 0, kGone or kOver. */
int base_answer(driftd_call call, int fd, int max_ms);
/* Waits until `fd` is ready for `events`, the call is over, or `max_ms` passed. Returns 0, kGone (time) or kOver. */
int base_wait(driftd_call call, int fd, int events, int max_ms);

#ifdef __cplusplus
}
#endif
#endif /* DRIFTD_FAULTY_SINKS_BASE_H */
