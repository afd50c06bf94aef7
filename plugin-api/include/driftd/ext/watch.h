/* SPDX-License-Identifier: Apache-2.0 */
/* Extension "driftd.watch", revision 1: the system pushes changes. Asked for through driftd_provider_table.query. The
 * rules, tags and lifetimes of provider.h hold. */
#ifndef DRIFTD_EXT_WATCH_H
#define DRIFTD_EXT_WATCH_H

#include "driftd/provider.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DRIFTD_EXT_WATCH "driftd.watch"
#define DRIFTD_EXT_WATCH_REVISION 1

typedef struct driftd_watch_args {
  uint32_t size;
  uint32_t reserved;
  driftd_str cursor; /* of the last BOOKMARK or CHECKPOINT stored; empty: from now */
} driftd_watch_args;

/* {process} No slot inside `size` is NULL. */
typedef struct driftd_watch_table {
  uint32_t size;
  uint32_t reserved;
  /* [concurrent] blocks on a host thread until cancelled. Emits changed resources (and tombstones), each group ended by
   * a BOOKMARK mark. A BOOKMARK with an empty cursor and no records before it is a hint: "something changed, refresh
   * now". CURSOR_EXPIRED forces a full refresh, then watch is called again. It does not count as one of the declared
   * concurrent calls. Its deadline is far away; cancelled() is what ends it. `args` {call}.
   * -> common, CURSOR_EXPIRED; OK: the stream ended normally; the host calls watch again */
  driftd_status (*watch)(driftd_instance self, driftd_call call, const driftd_watch_args* args);
} driftd_watch_table;

#ifdef __cplusplus
}
#endif
#endif /* DRIFTD_EXT_WATCH_H */
