/* SPDX-License-Identifier: Apache-2.0 */
/* SDK of a provider in C, second half: the tables. Not part of the ABI: all of it is compiled in. Write the functions
 * named at DRIFTD_PROVIDER_IN_C and end the file with that macro. */
#ifndef DRIFTD_SDK_TABLE_H
#define DRIFTD_SDK_TABLE_H

#include "driftd/sdk/call.h"

/* Pushes the document called `what` out of {name, text, name, text …, NULL} and returns OK, or NOT_FOUND with nothing
 * pushed. [pure] */
static inline driftd_status driftd_push_document(const char* const* documents, driftd_str what, driftd_push_fn push,
                                                 void* user) {
  for (; *documents != NULL; documents += 2) {
    if (!driftd_same(what, documents[0])) continue;
    push(user, driftd_text(documents[1]));
    return DRIFTD_OK;
  }
  return DRIFTD_NOT_FOUND;
}

/* Defines what is the same in each provider, and the one exported symbol. Before it in the file stand
 *   static const driftd_host_table* host;
 *   static const char describe[];             the JSON of driftd_provider_table.describe
 *   static const char* const documents[];     {"settings", "…", "my-kind", "…", NULL}
 *   provider_open, provider_close, provider_read, provider_refresh, provider_watch, as the tables have them, and
 *   static driftd_status provider_reachable(driftd_instance, driftd_call);     OK, or why the system is down
 * What the macro makes of them:
 *   describe, schema   push `describe` and `documents` as they stand
 *   health             provider_reachable: OK is UP, UNAVAILABLE is DOWN with the text of its driftd_fail, any other
 *                      status is that of the call
 *   diff               answers UNSUPPORTED, so `describe` has no "diff": true
 *   wake               does nothing: provider_watch waits with driftd_wait, which notices a cancelled call by itself
 *   query              offers driftd.watch only, so `describe` must list it in "extensions"
 *
 * `host` is set before any other function is called and is valid until the process ends. A host older than this header
 * has a shorter table: look at host->size before a function that a minor after 1.0 added. */
#define DRIFTD_PROVIDER_IN_C()                                                                                      \
  static driftd_status driftd_c_describe(driftd_push_fn push, void* user) {                                         \
    return push(user, driftd_text(describe)), DRIFTD_OK;                                                            \
  }                                                                                                                 \
  static driftd_status driftd_c_schema(driftd_str what, driftd_push_fn push, void* user) {                          \
    return driftd_push_document(documents, what, push, user);                                                       \
  }                                                                                                                 \
  static driftd_status driftd_c_diff(driftd_instance self, const driftd_diff_args* args, driftd_verdict_fn push,    \
                                     void* user) {                                                                  \
    return (void)self, (void)args, (void)push, (void)user, DRIFTD_UNSUPPORTED;                                      \
  }                                                                                                                 \
  static driftd_status driftd_c_health(driftd_instance self, driftd_call call, driftd_health_fn push, void* user) { \
    char why[DRIFTD_FAILURE_ROOM] = "";                                                                             \
    *driftd_why() = why;                                                                                            \
    const driftd_status status = provider_reachable(self, call);                                                    \
    *driftd_why() = NULL;                                                                                           \
    return driftd_push_health(status, why, push, user);                                                             \
  }                                                                                                                 \
  static void driftd_c_wake(driftd_instance self) { (void)self; }                                                   \
  static const void* driftd_c_query(driftd_str id, uint32_t revision) {                                             \
    static const driftd_watch_table table = {sizeof table, 0, provider_watch};                                      \
    return driftd_same(id, DRIFTD_EXT_WATCH) && revision == DRIFTD_EXT_WATCH_REVISION ? &table : NULL;              \
  }                                                                                                                 \
  DRIFTD_EXPORT driftd_status driftd_provider_v1(const driftd_host_table* given, const driftd_offer* offer,         \
                                                 driftd_accept* out) {                                              \
    static const driftd_provider_table table = {sizeof table,      0,                                               \
                                                driftd_c_describe, driftd_c_schema,                                 \
                                                provider_open,     provider_read,                                   \
                                                provider_refresh,  driftd_c_diff,                                   \
                                                driftd_c_health,   driftd_c_wake,                                   \
                                                provider_close,    driftd_c_query};                                 \
    (void)offer; /* minor_needed is 0: any host of this major will do */                                            \
    host = given;                                                                                                   \
    out->minor_built = DRIFTD_ABI_MINOR;                                                                            \
    out->minor_needed = 0;                                                                                          \
    out->table = &table;                                                                                            \
    return DRIFTD_OK;                                                                                               \
  }

#endif /* DRIFTD_SDK_TABLE_H */
