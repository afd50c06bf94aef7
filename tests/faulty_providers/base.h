/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sound provider that every faulty provider is based on. It has twelve resources of two kinds in memory and passes
 * every check of driftd-check (`sound.so`). Each slot of its table is a weak function faulty_X that calls base_X. A
 * faulty provider defines the function that it gets wrong, and may call base_X for the rest.
 */
#ifndef DRIFTD_FAULTY_PROVIDERS_BASE_H
#define DRIFTD_FAULTY_PROVIDERS_BASE_H

#include "driftd/ext/watch.h"
#include "driftd/provider.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { kTopics, kRoles, kKinds, kPage = 3, kRolesCount = 4, kDefaultTopics = 8, kBody = 256, kCursor = 64 };

typedef struct base_instance {
  unsigned count[kKinds];
  char token[128]; /* token of the setting `password`; empty if it was not given */
  char owner[64];  /* the backend's name, safe in JSON */
  int nudge;       /* eventfd that wake() writes */
  char note[64];   /* free for the faulty provider */
} base_instance;

/* A listing of the kinds of `scope` (one bit each), from a position on. */
typedef struct base_run {
  unsigned scope, kind, next;
  int stopped; /* FINISH_SOON was returned */
} base_run;

extern const char base_name[]; /* describe().id */
#ifdef FAULTY_NAME
const char base_name[] = FAULTY_NAME;
#endif
extern const char* const kKindNames[kKinds];
extern driftd_host_table base_host; /* a copy of the host's table, whose functions a faulty provider may wrap */

/* Functions that a faulty provider may define. */
driftd_status faulty_entry(const driftd_host_table* host, const driftd_offer* offer, driftd_accept* out);
driftd_status faulty_describe(driftd_push_fn push, void* user);
driftd_status faulty_schema(driftd_str what, driftd_push_fn push, void* user);
driftd_status faulty_open(driftd_call call, const driftd_open_args* args, driftd_instance* out);
driftd_status faulty_read(driftd_instance self, driftd_call call, const driftd_identity* ids, uint32_t count,
                          uint32_t stride);
driftd_status faulty_refresh(driftd_instance self, driftd_call call, const driftd_refresh_args* args,
                             driftd_refresh_result* result);
driftd_status faulty_diff(driftd_instance self, const driftd_diff_args* args, driftd_verdict_fn push, void* user);
driftd_status faulty_health(driftd_instance self, driftd_call call, driftd_health_fn push, void* user);
void faulty_wake(driftd_instance self);
void faulty_close(driftd_instance self);
const void* faulty_query(driftd_str id, uint32_t revision);
driftd_status faulty_watch(driftd_instance self, driftd_call call, const driftd_watch_args* args);
void faulty_record(base_instance* self, driftd_record* record, char* body); /* called before a record is emitted;
                                                                               body[kBody] */
void faulty_mark(driftd_mark* mark);                                        /* called before a mark is set */

/* Functions that it may call. */
driftd_status base_entry(const driftd_host_table* host, const driftd_offer* offer, driftd_accept* out);
driftd_status base_describe(driftd_push_fn push, void* user);
driftd_status base_schema(driftd_str what, driftd_push_fn push, void* user);
driftd_status base_open(driftd_call call, const driftd_open_args* args, driftd_instance* out);
driftd_status base_read(driftd_instance self, driftd_call call, const driftd_identity* ids, uint32_t count,
                        uint32_t stride);
driftd_status base_refresh(driftd_instance self, driftd_call call, const driftd_refresh_args* args,
                           driftd_refresh_result* result);
driftd_status base_diff(driftd_instance self, const driftd_diff_args* args, driftd_verdict_fn push, void* user);
driftd_status base_health(driftd_instance self, driftd_call call, driftd_health_fn push, void* user);
void base_wake(driftd_instance self);
void base_close(driftd_instance self);
const void* base_query(driftd_str id, uint32_t revision);
driftd_status base_watch(driftd_instance self, driftd_call call, const driftd_watch_args* args);

driftd_str base_str(const char* text);
int base_is(driftd_str given, const char* text);
driftd_status base_push(driftd_push_fn push, void* user, const char* text);
/* Pushes a diagnostic and returns its code. */
driftd_status base_fail(driftd_call call, driftd_status code, const char* text);
/* Finds the value of a member of a JSON object, strings without their quotes. Returns 0 if there is none. */
int base_setting(driftd_str json, const char* key, driftd_str* value);
int base_read_settings(base_instance* self, const driftd_open_args* args);
int base_parse_cursor(const base_instance* self, driftd_str cursor, base_run* at);
/* Returns OK if the call may go on. Otherwise pushes a diagnostic and returns why it must end. */
driftd_status base_may_go_on(driftd_call call);
/* Waits without spinning. Returns early if the call is cancelled; with call 0, nothing interrupts it. ms -1: without
 * end. */
void base_wait(driftd_call call, int ms);

#ifdef __cplusplus
}
#endif
#endif /* DRIFTD_FAULTY_PROVIDERS_BASE_H */
