/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The well-behaved provider that every animal is, but for one thing. Twelve things of two kinds live in memory; base.c
 * passes every check of driftd-check (`sound.so` is it). Each slot of the provider's table is a weak function animal_X
 * that calls base_X: an animal defines the one that it gets wrong, and calls base_X for the rest.
 */
#ifndef DRIFTD_ZOO_BASE_H
#define DRIFTD_ZOO_BASE_H

#include "driftd/ext/watch.h"
#include "driftd/provider.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { kTopics, kRoles, kKinds, kPage = 3, kRolesCount = 4, kDefaultTopics = 8, kBody = 256, kCursor = 64 };

typedef struct zoo_instance {
  unsigned count[kKinds];
  char token[128]; /* of the setting `password`; empty: not given */
  char owner[64];  /* the backend's name, fit for JSON */
  int nudge;       /* eventfd that wake() writes */
  char note[64];   /* of the animal */
} zoo_instance;

/* A listing of the kinds of `scope` (a bit each) from a position on. */
typedef struct zoo_run {
  unsigned scope, kind, next;
  int stopped; /* FINISH_SOON */
} zoo_run;

extern const char zoo_name[]; /* describe().id */
#ifdef ZOO_NAME
const char zoo_name[] = ZOO_NAME;
#endif
extern const char* const kKindNames[kKinds];
extern driftd_host_table zoo_host; /* a copy of the host's: an animal may put itself in between */

/* What an animal may define. */
driftd_status animal_entry(const driftd_host_table* host, const driftd_offer* offer, driftd_accept* out);
driftd_status animal_describe(driftd_push_fn push, void* user);
driftd_status animal_schema(driftd_str what, driftd_push_fn push, void* user);
driftd_status animal_open(driftd_call call, const driftd_open_args* args, driftd_instance* out);
driftd_status animal_read(driftd_instance self, driftd_call call, const driftd_identity* ids, uint32_t count,
                          uint32_t stride);
driftd_status animal_refresh(driftd_instance self, driftd_call call, const driftd_refresh_args* args,
                             driftd_refresh_result* result);
driftd_status animal_diff(driftd_instance self, const driftd_diff_args* args, driftd_verdict_fn push, void* user);
driftd_status animal_health(driftd_instance self, driftd_call call, driftd_health_fn push, void* user);
void animal_wake(driftd_instance self);
void animal_close(driftd_instance self);
const void* animal_query(driftd_str id, uint32_t revision);
driftd_status animal_watch(driftd_instance self, driftd_call call, const driftd_watch_args* args);
void animal_record(zoo_instance* self, driftd_record* record, char* body); /* before it is emitted; body[kBody] */
void animal_mark(driftd_mark* mark);                                       /* before it is made */

/* What it may call. */
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

driftd_str zoo_str(const char* text);
int zoo_is(driftd_str given, const char* text);
driftd_status zoo_push(driftd_push_fn push, void* user, const char* text);
/* Tells a diagnostic and returns its code. */
driftd_status zoo_fail(driftd_call call, driftd_status code, const char* text);
/* The value of a member of a JSON object, strings without their quotes; 0: it is not there. */
int zoo_setting(driftd_str json, const char* key, driftd_str* value);
int zoo_read_settings(zoo_instance* self, const driftd_open_args* args);
int zoo_parse_cursor(const zoo_instance* self, driftd_str cursor, zoo_run* at);
/* OK: go on; else why the call must end, told already. */
driftd_status zoo_may_go_on(driftd_call call);
/* Waits without spinning; returns early when the call is cancelled. call 0: nothing interrupts it. ms -1: for ever. */
void zoo_wait(driftd_call call, int ms);

#ifdef __cplusplus
}
#endif
#endif /* DRIFTD_ZOO_BASE_H */
