/* SPDX-License-Identifier: Apache-2.0 */
/* Extension "driftd.discover", revision 1: the backends that this instance knows of (a cluster's Services and Secrets,
 * the databases in a state file, the replicas of a primary). Asked for through driftd_provider_table.query. The rules,
 * tags and lifetimes of provider.h hold. */
#ifndef DRIFTD_EXT_DISCOVER_H
#define DRIFTD_EXT_DISCOVER_H

#include "driftd/provider.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DRIFTD_EXT_DISCOVER "driftd.discover"
#define DRIFTD_EXT_DISCOVER_REVISION 1

#define DRIFTD_BACKEND_EXTERNAL 1u /* runs outside of the system that names it: a managed database, an ExternalName */

/* One backend. Names and list elements: at most 4 KiB each, lists 4,096 elements; config: 1 MiB. */
typedef struct driftd_discovered {
  uint32_t size;
  uint32_t flags;
  driftd_str name;     /* unique among what this instance discovers, and the same each time; required */
  driftd_str type;     /* a backend type or alias, as providers declare them: "postgres"; required */
  driftd_str version;  /* of the server, as far as it is known here: "16.2"; empty: unknown */
  driftd_str config;   /* JSON object: settings of that type which differ from its defaults; empty = {}. No secret */
  driftd_str origin;   /* what defines it: "kubernetes-service", "terraform-state"; empty: the provider's id */
  driftd_str revision; /* etag, resourceVersion, serial of what defines it; opaque */
  const driftd_str* endpoints; /* {call} "host:port" or a URL, by DNS name where there is one, the best first */
  uint64_t endpoint_count;
  const driftd_str* capabilities; /* {call} "read-replica", "tls", ... */
  uint64_t capability_count;
  const driftd_kv* credentials; /* {call} setting path -> where its value is ("password" -> "k8s:ns/name#key", as the
                                 * config writes references); a reference, never the value */
  uint32_t credential_count;
  uint32_t credential_stride;
  const driftd_kv* labels; /* {call} what routes and filters select by */
  uint32_t label_count;
  uint32_t label_stride;
  const driftd_kv* metadata; /* {call} goes into the event; `defined_in`: whose part of the source defines it, where
                              * many write in it */
  uint32_t metadata_count;
  uint32_t metadata_stride;
  int64_t observed_ns; /* wall clock when the request was SENT */
} driftd_discovered;

typedef struct driftd_discover_args {
  uint32_t size;
  uint32_t reserved;
  const driftd_str* types; /* {call} only backends of these types; NULL with type_count 0: all */
  uint64_t type_count;
} driftd_discover_args;

typedef struct driftd_discover_result {
  uint32_t size;
  uint32_t complete; /* 1: every backend of args.types was pushed in this run. A backend that is missing is gone only
                      * after COMPLETE discoveries; 0, like every status but OK: a missing backend means nothing */
  int64_t next_ms;   /* discover again after this many ms; 0: the host's interval */
} driftd_discover_result;

/* [call] A function of the host that copies a backend. `user` {user}, the struct {call}.
 * -> OK, INVALID (not taken: a name twice, a member that breaks its rule), BUDGET, CANCELLED, DEADLINE, INTERNAL */
typedef driftd_status (*driftd_discovered_fn)(void* user, const driftd_discovered* backend);

/* {process} No slot inside `size` is NULL. */
typedef struct driftd_discover_table {
  uint32_t size;
  uint32_t reserved;
  /* [concurrent] pushes each backend once. What could not be looked at gets a diagnostic, and `complete` stays 0.
   * `args` {call}, `result` {out}, zeroed by the host. -> common */
  driftd_status (*discover)(driftd_instance self, driftd_call call, const driftd_discover_args* args,
                            driftd_discovered_fn push, void* user, driftd_discover_result* result);
} driftd_discover_table;

#ifdef __cplusplus
}
#endif
#endif /* DRIFTD_EXT_DISCOVER_H */
