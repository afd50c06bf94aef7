/* SPDX-License-Identifier: Apache-2.0 */
/*
 * driftd provider ABI 1.0, frozen 2026-11-21. This header is the specification.
 *
 * A provider is a shared object that reads one type of system (Redis, Postgres, a Terraform state, yours).
 * It exports exactly one symbol, driftd_provider_v1, and hides everything else. The host calls the functions of
 * driftd_provider_table; inside such a call the provider calls the functions of driftd_host_table.
 *
 * Structs. Every struct that crosses starts with `uint32_t size`, set by the writer to its own sizeof, and grows only
 * at its tail. A reader uses min(its own, given); what is missing reads as zero, and zero means "as before".
 * `reserved` is written as zero and not read. driftd_str is exempt and frozen. Arrays are walked by the stride
 * that comes with them (where none does, as for the kv of `log`, by the `size` of their first element), never by the
 * reader's own sizeof.
 *
 * Text and bytes are pointer + length, UTF-8, not NUL-terminated. {NULL, 0} is the empty string; NULL with a length is
 * INVALID.
 *
 * Lifetimes. Nothing allocated on one side is freed on the other. Each pointer has one of these:
 *   {call}     borrowed: readable until the function that it was passed to returns. So is every pointer, and every
 *              driftd_str, inside an argument, in both directions: args, ids, records, marks, diagnostics, pushed texts
 *              and structs, and all that they point to. The receiver copies what it keeps and never writes through it.
 *   {out}      written by the callee before it returns; the caller's `size` says how much of it there is.
 *   {user}     handed back as it is, valid as long as the callback that it came with: until the function returns.
 *   {process}  valid, and unchanged, until the process ends: the host's table and the provider's tables.
 *   {instance} from a successful open until close returns.
 *
 * Threads. Each function carries one tag:
 *   [pure]       any thread, also several at once; no I/O, no state, same answer each time
 *   [serial]     never two [serial] calls at once for one instance; open and close exclude every other call
 *   [concurrent] for one instance up to the number of calls that `describe` declares
 *   [call]       only on the thread and inside the call that owns the driftd_call handle or was given the callback
 *   [any]        any thread at any time while the instance lives
 * A provider owns no thread that calls the host. Host functions never call back into the provider, except `use` of
 * driftd_host_table.secret, on the same thread. A provider never forks, runs programs or changes the process (signals,
 * locale, working folder, environment, descriptors 0 to 2).
 *
 * No exception, panic or longjmp crosses. A loaded provider is never unloaded.
 * Times: *_ns of the wall clock are nanoseconds since the Unix epoch; deadlines are CLOCK_MONOTONIC nanoseconds.
 */
#ifndef DRIFTD_PROVIDER_H
#define DRIFTD_PROVIDER_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DRIFTD_ABI_MAJOR 1
#define DRIFTD_ABI_MINOR 0
#define DRIFTD_EXPORT __attribute__((visibility("default")))

/* Borrowed text or bytes. */
typedef struct driftd_str {
  const char* data; /* {call}; {process} where a struct of that lifetime holds it */
  uint64_t len;     /* bytes */
} driftd_str;

/* A call in progress: index + generation, made by the host, valid until the provider's function returns. A stale or
 * forged handle is answered DRIFTD_INVALID and counted against the plugin. Never 0. */
typedef uint64_t driftd_call;

/* {instance} What the provider calls its own instance; the host never looks inside. Any value, also NULL. */
typedef void* driftd_instance;

/* ---- status codes: they say what the scheduler must do ------------------------------------------------------ */
typedef int32_t driftd_status;
#define DRIFTD_OK 0              /* done */
#define DRIFTD_INVALID 1         /* the caller's fault: fix the settings or the call; no retry */
#define DRIFTD_DENIED 2          /* a right is missing; say which in a diagnostic */
#define DRIFTD_UNAUTHENTICATED 3 /* the credential was refused */
#define DRIFTD_NOT_FOUND 4       /* it is not there; the only code that can become a deletion */
#define DRIFTD_CONFLICT 5        /* somebody else changed it meanwhile */
#define DRIFTD_THROTTLED 6       /* come later, see driftd_diagnostic.retry_after_ms */
#define DRIFTD_UNAVAILABLE 7     /* the system cannot be reached; retry with backoff */
#define DRIFTD_DEADLINE 8        /* the deadline of the call passed */
#define DRIFTD_CANCELLED 9       /* the host asked to stop */
#define DRIFTD_CURSOR_EXPIRED 10 /* the cursor is unknown or too old; refresh without one */
#define DRIFTD_UNSUPPORTED 11    /* this provider or this server cannot do that */
#define DRIFTD_BUDGET 12         /* a budget of the host is used up */
#define DRIFTD_CORRUPT 13        /* the system answered something that cannot be understood */
#define DRIFTD_INTERNAL 14       /* a bug of the provider; an unknown code is read as this */
/* Flow, only from driftd_host_table.emit and mark: accepted, but return from the call soon. */
#define DRIFTD_FINISH_SOON (-1) /* taken; stop at the next good place, without COMPLETE for what is not whole */
/* Below, `->` lists what a function may answer. "common" stands for OK, INVALID, DENIED, UNAUTHENTICATED, THROTTLED,
 * UNAVAILABLE, DEADLINE, CANCELLED, UNSUPPORTED, BUDGET, CORRUPT, INTERNAL. A status other than OK comes with at least
 * one diagnostic if the function has a call. A status that a host function returned is returned unchanged. */

/* ---- small structs ------------------------------------------------------------------------------------------ */
typedef struct driftd_kv {
  uint32_t size;
  uint32_t reserved;
  driftd_str key;
  driftd_str value;
} driftd_kv;

/* The identity of a resource within its backend, for example {"role", "app"}. */
typedef struct driftd_identity {
  uint32_t size;
  uint32_t reserved;
  driftd_str kind;
  driftd_str id;
  driftd_str backend; /* as in driftd_record; empty: the backend of this instance */
} driftd_identity;

/* An attribute that exists but could not be read: judged unknown, never drift. */
typedef struct driftd_unread {
  uint32_t size;
  driftd_status code; /* DRIFTD_DENIED, DRIFTD_UNAVAILABLE, DRIFTD_UNSUPPORTED ... */
  driftd_str path;    /* attribute path, `a.b[0].c`, `config["min.insync.replicas"]`; may end in `.**` */
  driftd_str reason;  /* one sentence; names the missing right */
} driftd_unread;

/* One resource as read now. Names, versions and paths: at most 4 KiB each; body: 4 MiB; status: 1 MiB. */
typedef struct driftd_record {
  uint32_t size;
  uint32_t schema_revision; /* of the kind's driftd-schema/1 document; 0 = 1 */
  driftd_str kind;
  driftd_str id;
  driftd_str backend;          /* empty: the backend of this instance; a source names others */
  driftd_str body;             /* JSON object of attributes: what can drift. Raw values; the host judges equality */
  driftd_str status;           /* JSON object, volatile and health; never compared. Empty = {} */
  driftd_str version;          /* etag, resourceVersion, serial; opaque */
  driftd_str external_name;    /* identity the system gave it (topic UUID, role oid); another one = recreated */
  driftd_str origin;           /* "kubernetes-secret", "terraform-state"...; empty: the provider's id */
  const driftd_unread* unread; /* {call} NULL with unread_count 0 */
  uint32_t unread_count;
  uint32_t unread_stride;    /* sizeof of one element */
  const driftd_kv* metadata; /* {call} goes into the event; NULL with metadata_count 0 */
  uint32_t metadata_count;
  uint32_t metadata_stride;
  const driftd_str* sensitive; /* {call} attribute paths that are secret beyond what the schema says; digested in the
                                * worker; NULL with sensitive_count 0 */
  uint64_t sensitive_count;
  int64_t observed_ns; /* wall clock when the request was SENT (watch: when the change was received) */
  uint32_t tombstone;  /* watch only: 1 = the resource is gone; body is ignored */
  uint32_t reserved;
} driftd_record;

/* A position in a stream of records. Returning OK means accepted by the host, not durable. */
#define DRIFTD_MARK_CHECKPOINT 1 /* all before this is a page; `cursor` resumes behind it */
#define DRIFTD_MARK_COMPLETE 2   /* every resource of `kind` was emitted in this uninterrupted run, `count` of them */
#define DRIFTD_MARK_BOOKMARK 3   /* watch: nothing before `cursor` is outstanding */
typedef struct driftd_mark {
  uint32_t size;
  uint32_t type;
  driftd_str kind;    /* COMPLETE: which kind; one mark for each kind of the scope */
  driftd_str cursor;  /* opaque to the host, at most 64 KiB; empty: none */
  uint64_t count;     /* COMPLETE: records of that kind (and backend) emitted in this run, also before the cursor */
  driftd_str backend; /* COMPLETE: of which backend, as in driftd_record; empty: the backend of this instance */
} driftd_mark;

/* What went wrong, pushed during the call that failed or was incomplete. Never contains a secret. */
typedef struct driftd_diagnostic {
  uint32_t size;
  driftd_status code;
  driftd_str kind;  /* the kind that is incomplete; empty: all */
  driftd_str id;    /* the resource; empty: the whole kind */
  driftd_str path;  /* attribute path, or `settings.tls.ca` for a setting; may be empty */
  driftd_str text;  /* what, expected, found, next step */
  driftd_str right; /* DENIED: the right to grant, as the system names it (`+config|get`, `pg_monitor`) */
  int64_t retry_after_ms;
  driftd_str backend; /* of the kind or resource, as in driftd_record; empty: the backend of this instance */
} driftd_diagnostic;

/* Reachability now. */
#define DRIFTD_HEALTH_UNKNOWN 0  /* it cannot be told */
#define DRIFTD_HEALTH_UP 1       /* answers and does its work */
#define DRIFTD_HEALTH_DEGRADED 2 /* answers, but something is wrong; see reason */
#define DRIFTD_HEALTH_DOWN 3     /* does not answer */
typedef struct driftd_health {
  uint32_t size;
  uint32_t state;
  int64_t latency_us;
  driftd_str reason;          /* why it is not UP */
  driftd_str role;            /* "primary", "replica", ...; empty: none */
  driftd_str system_identity; /* Kafka cluster id, Postgres system_identifier, tfstate lineage; empty: none */
  driftd_str server_version;
} driftd_health;

/* ---- host table: what a provider may call ------------------------------------------------------------------- */
#define DRIFTD_LOG_DEBUG 0
#define DRIFTD_LOG_INFO 1
#define DRIFTD_LOG_WARN 2
#define DRIFTD_LOG_ERROR 3

/* [call] The provider's function that looks at a secret. `user` {user}; `data` {call}, not NUL-terminated. It calls no
 * host function. */
typedef void (*driftd_use_fn)(void* user, const uint8_t* data, uint64_t len);
/* [call] A function of the host that copies a text. `user` {user}, `text` {call}. */
typedef void (*driftd_push_fn)(void* user, driftd_str text);

/* {process} No slot inside `size` is NULL; one behind it is a function that this (older) host does not have. */
typedef struct driftd_host_table {
  uint32_t size;
  uint32_t minor; /* newest minor that the host speaks */
  /* [any] wall clock, ns since the epoch; injectable: do not call the system's clock for record times. */
  int64_t (*now)(void);
  /* [call] a log line with key/values; scrubbed of the instance's secrets, rate-limited. `kv` {call} may be NULL. */
  void (*log)(driftd_call call, int32_t level, driftd_str text, const driftd_kv* kv, uint32_t kv_count);
  /* [call] a gauge of the plugin, `name` declared in describe().metrics. 500 a second are accepted, 10,000 at once;
   * the rest is dropped and counted as a misuse. -> OK, INVALID (an undeclared name, not a number), CANCELLED,
   * DEADLINE, INTERNAL */
  driftd_status (*metric)(driftd_call call, driftd_str name, double value);
  /* [call] 1 when the host wants the call to end, else 0. */
  int32_t (*cancelled)(driftd_call call);
  /* [call] CLOCK_MONOTONIC ns; the worker is killed a grace time (2 s) after it. */
  int64_t (*deadline)(driftd_call call);
  /* [call] descriptor that becomes readable on cancel, open until the call returns; do not read or close. -1: none. */
  int32_t (*cancel_fd)(driftd_call call);
  /* [call] pushes records; `records` {call}. Only inside refresh, read and watch.
   * -> OK, FINISH_SOON, INVALID (nothing taken), BUDGET, INTERNAL; CANCELLED or DEADLINE when the call ended while the
   * host made it wait */
  driftd_status (*emit)(driftd_call call, const driftd_record* records, uint32_t count, uint32_t stride);
  /* [call] a checkpoint, completion or bookmark; order with emit is kept. -> as emit */
  driftd_status (*mark)(driftd_call call, const driftd_mark* mark);
  /* [call] a diagnostic. */
  void (*diag)(driftd_call call, const driftd_diagnostic* diagnostic);
  /* [call] waits for `tokens` of the host-owned rate limiter `bucket`. -> OK, INVALID, CANCELLED, DEADLINE,
   * UNAVAILABLE, INTERNAL */
  driftd_status (*permit)(driftd_call call, driftd_str bucket, uint32_t tokens);
  /* [call] resolves a token found in a sensitive setting: calls `use` once before it returns, or not at all. -> OK,
   * INVALID, DENIED (a token that was not issued for this instance) */
  driftd_status (*secret)(driftd_call call, driftd_str token, driftd_use_fn use, void* user);
  /* [any] a host extension by id and revision, {process}; NULL when it is not offered. */
  const void* (*query)(driftd_str id, uint32_t revision);
} driftd_host_table;

/* ---- provider table: what the host calls -------------------------------------------------------------------- */
typedef struct driftd_open_args {
  uint32_t size;
  uint32_t reserved;
  driftd_str backend;  /* the backend's name, for log lines */
  driftd_str settings; /* JSON, validated against schema("settings"); sensitive values are tokens for secret() */
} driftd_open_args;

#define DRIFTD_REFRESH_FULL 1u /* ignore shortcuts: list everything (regularly, first run, on demand) */
typedef struct driftd_refresh_args {
  uint32_t size;
  uint32_t flags;
  driftd_str cursor;       /* of the last CHECKPOINT stored; empty: from the start */
  const driftd_str* kinds; /* {call} only these; NULL with kind_count 0: all that the settings include */
  uint32_t kind_count;
  uint32_t reserved;
} driftd_refresh_args;

typedef struct driftd_refresh_result {
  uint32_t size;
  uint32_t unchanged; /* 1: nothing changed since `cursor`; nothing was emitted, all resources stay as stored */
  int64_t next_ms;    /* refresh again after this many ms, at least 500; 0: the host's interval */
} driftd_refresh_result;

typedef struct driftd_change {
  uint32_t size;
  uint32_t index; /* of this change in its array */
  driftd_str path;
  driftd_str old_value; /* JSON text; empty: absent */
  driftd_str new_value;
} driftd_change;

typedef struct driftd_diff_args {
  uint32_t size;
  uint32_t change_stride;
  driftd_str kind;
  driftd_str id;
  const driftd_change* changes; /* {call} */
  uint32_t change_count;
  uint32_t reserved;
} driftd_diff_args;

#define DRIFTD_VERDICT_EQUIVALENT 1 /* the two values mean the same */
#define DRIFTD_VERDICT_UNSETTLED 2  /* the system is still applying it: judged unknown */
typedef struct driftd_verdict {
  uint32_t size;
  uint32_t index; /* the change that is demoted */
  uint32_t verdict;
  uint32_t reserved;
  driftd_str reason; /* shown by `driftd explain`; required */
} driftd_verdict;

/* [call] A function of the host that copies a verdict. `user` {user}, the struct {call}. */
typedef void (*driftd_verdict_fn)(void* user, const driftd_verdict* verdict);
/* [call] A function of the host that copies a health report. `user` {user}, the struct {call}. */
typedef void (*driftd_health_fn)(void* user, const driftd_health* health);

/* {process} No slot inside `size` is NULL. */
typedef struct driftd_provider_table {
  uint32_t size;
  uint32_t reserved;
  /* [pure] pushes one JSON object, at most 1 MiB: {"id", "version", "types": [backend types and aliases],
   * "kinds": [...], "extensions": [{"id": "driftd.watch", "revision": 1}], "concurrency": 1 to 64,
   * "metrics": [{"name","unit"}], "diff": true if `diff` is implemented}. -> OK, INTERNAL */
  driftd_status (*describe)(driftd_push_fn push, void* user);
  /* [pure] pushes one JSON document, at most 1 MiB. `what` "settings": JSON Schema (draft 2020-12) of the settings; a
   * sensitive one has "writeOnly": true, a file has "format": "path", a Unix socket "format": "socket". `what` = a
   * kind: its driftd-schema/1 document (docs/formats.md). -> OK, NOT_FOUND (nothing pushed), INTERNAL */
  driftd_status (*schema)(driftd_str what, driftd_push_fn push, void* user);
  /* [serial] makes an instance; it need not connect to the system. `args` {call}, `out` {out}: untouched on failure,
   * and then close is not called. -> common */
  driftd_status (*open)(driftd_call call, const driftd_open_args* args, driftd_instance* out);
  /* [concurrent] emits these identities as they are now; for one that does not exist a diagnostic NOT_FOUND with its
   * kind, id and backend, only when the system answered so. -> common; OK if every identity was settled */
  driftd_status (*read)(driftd_instance self, driftd_call call, const driftd_identity* ids, uint32_t count,
                        uint32_t stride);
  /* [concurrent] emits every resource of the scope, in pages ended by CHECKPOINT, one COMPLETE for each kind that was
   * listed whole. A kind that could not be listed whole gets a diagnostic instead of COMPLETE. `result` {out}, zeroed
   * by the host. -> common, CURSOR_EXPIRED */
  driftd_status (*refresh)(driftd_instance self, driftd_call call, const driftd_refresh_args* args,
                           driftd_refresh_result* result);
  /* [pure] optional: demotes changes that the host found. -> OK, UNSUPPORTED (nothing pushed), INVALID, INTERNAL */
  driftd_status (*diff)(driftd_instance self, const driftd_diff_args* args, driftd_verdict_fn push, void* user);
  /* [concurrent] pushes one health report within 1 s, also while a refresh is blocked; it does not count as one of the
   * declared calls. A system that is down is OK with DRIFTD_HEALTH_DOWN. -> common */
  driftd_status (*health)(driftd_instance self, driftd_call call, driftd_health_fn push, void* user);
  /* [any] makes blocked calls of the instance check cancelled(); no I/O, returns at once. */
  void (*wake)(driftd_instance self);
  /* [serial] ends an instance; no other call is in progress. Returns within the grace time. */
  void (*close)(driftd_instance self);
  /* [pure] an extension table by id and revision, {process}; NULL for every other id or revision. */
  const void* (*query)(driftd_str id, uint32_t revision);
} driftd_provider_table;

/* ---- entry -------------------------------------------------------------------------------------------------- */
typedef struct driftd_offer {
  uint32_t size;
  uint32_t minor_min;  /* oldest minor that the host still serves */
  uint32_t minor_max;  /* newest minor that the host speaks */
  uint32_t in_process; /* 1: loaded into the agent itself, beside other plugins; 0: in a worker of its own */
  driftd_str host_version;
} driftd_offer;

typedef struct driftd_accept {
  uint32_t size;
  uint32_t minor_built;  /* DRIFTD_ABI_MINOR of the header it was compiled with; also filled by a refusal */
  uint32_t minor_needed; /* oldest host minor that it works with; also filled by a refusal */
  uint32_t reserved;
  const driftd_provider_table* table; /* {process} static */
  driftd_str refusal; /* {process} why UNSUPPORTED, when it is not minor_needed: "runs in a worker only (Go)" */
} driftd_accept;

/* The one exported symbol. [pure] `host` {process}, `offer` {call}, `out` {out}. May be called more than once and
 * answers the same; does no I/O. -> OK, UNSUPPORTED (minor_needed is above offer.minor_max, or `refusal` says why) */
DRIFTD_EXPORT driftd_status driftd_provider_v1(const driftd_host_table* host, const driftd_offer* offer,
                                               driftd_accept* out);

#ifdef __cplusplus
}
#endif
#endif /* DRIFTD_PROVIDER_H */
