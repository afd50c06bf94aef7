/* SPDX-License-Identifier: Apache-2.0 */
/* Extension "driftd.upgrade", revision 1: stored bodies of older schema revisions, in today's form. Without it the
 * attributes that a newer revision renamed or retyped get a new baseline. Asked for through
 * driftd_provider_table.query. The rules, tags and lifetimes of provider.h hold. */
#ifndef DRIFTD_EXT_UPGRADE_H
#define DRIFTD_EXT_UPGRADE_H

#include "driftd/provider.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DRIFTD_EXT_UPGRADE "driftd.upgrade"
#define DRIFTD_EXT_UPGRADE_REVISION 1

typedef struct driftd_upgrade_args {
  uint32_t size;
  uint32_t from_revision; /* of the kind's driftd-schema/1 document when the body was stored; less than today's */
  driftd_str kind;
  driftd_str body; /* JSON object as stored: canonical, and each sensitive value is {"$hmac": "..."}, which may be moved
                    * to another path or dropped, never looked into: a digest that moved gets a new baseline */
} driftd_upgrade_args;

/* {process} No slot inside `size` is NULL. */
typedef struct driftd_upgrade_table {
  uint32_t size;
  uint32_t reserved;
  /* [pure] pushes the body in the form of the revision that schema(kind) has now: one JSON object, once. What the newer
   * revision adds and the old body cannot know is left out (the host fills it silently). `args` {call}.
   * -> OK, UNSUPPORTED (that revision, or that kind, is unknown; nothing pushed), INVALID (the body is not of that
   * revision), INTERNAL */
  driftd_status (*upgrade)(const driftd_upgrade_args* args, driftd_push_fn push, void* user);
} driftd_upgrade_table;

#ifdef __cplusplus
}
#endif
#endif /* DRIFTD_EXT_UPGRADE_H */
