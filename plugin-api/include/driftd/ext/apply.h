/* SPDX-License-Identifier: Apache-2.0 */
/* Extension "driftd.apply", revision 1, EXPERIMENTAL: puts known values back into a resource that exists. A host asks
 * for it only where the operator's config has `agent.experimental: [driftd.apply]`. It never creates or deletes a
 * resource and never gets a secret. Asked for through driftd_provider_table.query. The rules, tags and lifetimes of
 * provider.h hold. */
#ifndef DRIFTD_EXT_APPLY_H
#define DRIFTD_EXT_APPLY_H

#include "driftd/provider.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DRIFTD_EXT_APPLY "driftd.apply"
#define DRIFTD_EXT_APPLY_REVISION 1

/* Change nothing; answer as the real call would. Mandatory: a provider without a dry run must not offer this extension.
 * The host makes a dry run before each real one, with the same key. */
#define DRIFTD_APPLY_DRY_RUN 1u

typedef struct driftd_apply_args {
  uint32_t size;
  uint32_t flags;
  driftd_str kind;
  driftd_str id;
  driftd_str backend;          /* as in driftd_record; empty: the backend of this instance */
  driftd_str expected_version; /* driftd_record.version that was judged: the system's is another one -> CONFLICT. Empty:
                                * the system has none; then the old_value of each change must still be there */
  driftd_str idempotency_key;  /* the same key again: the same change, made at most once. Required, at most 128 bytes */
  const driftd_change* changes; /* {call} old_value: as found now; new_value: to put back (empty: to unset) */
  uint32_t change_count;        /* at least 1; all of them or none */
  uint32_t change_stride;
} driftd_apply_args;

#define DRIFTD_APPLY_SUCCESS 1       /* the values are set, by this call or before it (dry run: they would be) */
#define DRIFTD_APPLY_FAILED 2        /* the system refused the values; the same again would fail again */
#define DRIFTD_APPLY_REQUEUE 3       /* not now; try again at the host's pace, with the same key */
#define DRIFTD_APPLY_REQUEUE_AFTER 4 /* accepted, being applied: again after requeue_after_ms, same key */
typedef struct driftd_applied {
  uint32_t size;
  uint32_t outcome;
  uint32_t changed; /* 1: this call changed the system; always 0 in a dry run */
  uint32_t reserved;
  int64_t requeue_after_ms; /* REQUEUE_AFTER: at least 1 */
  driftd_str version;       /* of the resource afterwards; empty: unknown */
  driftd_str text;          /* one sentence; required unless SUCCESS. No secret */
  const driftd_kv* details; /* {call} what was done or is missing, for the audit log; NULL with detail_count 0 */
  uint32_t detail_count;
  uint32_t detail_stride;
} driftd_applied;

/* [call] A function of the host that copies an outcome. `user` {user}, the struct {call}. */
typedef void (*driftd_applied_fn)(void* user, const driftd_applied* applied);

/* {process} No slot inside `size` is NULL. */
typedef struct driftd_apply_table {
  uint32_t size;
  uint32_t reserved;
  /* [serial] puts the values back and pushes exactly one outcome when it answers OK. `args` {call}.
   * -> common, NOT_FOUND (the resource is gone; apply does not create it), CONFLICT (it changed since it was judged;
   * nothing was done) */
  driftd_status (*apply)(driftd_instance self, driftd_call call, const driftd_apply_args* args, driftd_applied_fn push,
                         void* user);
} driftd_apply_table;

#ifdef __cplusplus
}
#endif
#endif /* DRIFTD_EXT_APPLY_H */
