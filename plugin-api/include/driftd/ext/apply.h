/* SPDX-License-Identifier: Apache-2.0 */
/* Extension "driftd.apply", revision 1: puts known values back into a resource that exists. The host calls it only for
 * a backend whose operator allows enforcement. It never creates or deletes a resource and never gets a secret: a value
 * that is or holds a secret, or the digest of one ({"$hmac": ...}), is never put back. Asked for through
 * driftd_provider_table.query. The rules, tags and lifetimes of provider.h hold.
 *
 * In this order, before anything is changed: INVALID for a request that breaks a rule of this file; NOT_FOUND; SUCCESS
 * with `changed` 0 if every value is already the new one; CONFLICT; FAILED if one of the attributes cannot be set here
 * (read-only facts, credentials, an attribute without a value to unset it to).
 *
 * All or none: if the second of two commands fails, the provider takes the first back and answers FAILED with a text
 * that says so, `changed` 0. If that fails too, it answers FAILED with `changed` 1 and one detail `left` for each
 * attribute path that stayed changed. REQUEUE and REQUEUE_AFTER are only for values that the system keeps or will
 * surely take. A call that ends with a status instead of an outcome has changed nothing, but for DEADLINE, CANCELLED,
 * UNAVAILABLE and INTERNAL, and for a worker that died: then nobody knows, and the host reads the resource again before
 * it says or does anything. */
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
                                * the system has none; then each attribute must still have its old_value (empty: be
                                * absent), compared as the kind's schema says, or -> CONFLICT */
  driftd_str idempotency_key;  /* 1 to 128 bytes. The same key again in the life of the instance: the same change, made
                                * at most once; the second real call changes nothing more and answers `changed` 0. A dry
                                * run does not use a key up. At least the last 1000 keys are remembered */
  const driftd_change* changes; /* {call} old_value: as found now; new_value: to put back (empty: to unset, that is to
                                 * make the attribute absent or, where it cannot be, what the system starts with). Both
                                 * are JSON in the form in which refresh gives the attribute */
  uint32_t change_count;        /* 1 to 256, of one resource, no path twice; all of them or none */
  uint32_t change_stride;
} driftd_apply_args;

#define DRIFTD_APPLY_SUCCESS 1 /* the values are set, by this call or before it (dry run: they would be) */
#define DRIFTD_APPLY_FAILED 2  /* the system refused, or a right that `text` names is missing; nothing half done */
#define DRIFTD_APPLY_REQUEUE 3 /* not now; try again at the host's pace, with the same key */
#define DRIFTD_APPLY_REQUEUE_AFTER 4 /* accepted, being applied: again after requeue_after_ms, same key */

/* Keys of details that the host knows; each may occur several times, and their order counts. No value holds a secret.
 * "command": one exact command in the system's own language, in the order in which they ran (dry run: would run), as an
 * operator would type it; without the check that came before it. "undo": a command that takes the change back, in the
 * order in which to run them. "left": an attribute path that a failed call could not take back. */
#define DRIFTD_APPLY_COMMAND "command"
#define DRIFTD_APPLY_UNDO "undo"
#define DRIFTD_APPLY_LEFT "left"

typedef struct driftd_applied {
  uint32_t size;
  uint32_t outcome;
  uint32_t changed; /* 1: this call changed the system; always 0 in a dry run */
  uint32_t reserved;
  int64_t requeue_after_ms; /* REQUEUE_AFTER: at least 1 */
  driftd_str version;       /* of the resource afterwards; empty: unknown */
  driftd_str text;          /* one sentence; required unless SUCCESS. No secret */
  const driftd_kv* details; /* {call} what was done or is missing, for the audit log; NULL with detail_count 0. At most
                             * 1024; others than the keys above once each */
  uint32_t detail_count;
  uint32_t detail_stride;
} driftd_applied;

/* [call] A function of the host that copies an outcome. `user` {user}, the struct {call}. */
typedef void (*driftd_applied_fn)(void* user, const driftd_applied* applied);

/* {process} No slot inside `size` is NULL. */
typedef struct driftd_apply_table {
  uint32_t size;
  uint32_t reserved;
  /* [serial] puts the values back and pushes exactly one outcome when it answers OK. It reads the resource before it
   * changes it, and asks for the deadline and the cancellation of the call between two commands. `args` {call}.
   * -> common, NOT_FOUND (the resource is gone; apply does not create it), CONFLICT (it changed since it was judged;
   * nothing was done) */
  driftd_status (*apply)(driftd_instance self, driftd_call call, const driftd_apply_args* args, driftd_applied_fn push,
                         void* user);
} driftd_apply_table;

#ifdef __cplusplus
}
#endif
#endif /* DRIFTD_EXT_APPLY_H */
