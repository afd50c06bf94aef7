/* SPDX-License-Identifier: Apache-2.0 */
/*
 * driftd sink ABI 1.0-rc. This header is the specification. Until 1.0 is tagged it may still change.
 *
 * A sink plugin is a shared object that hands events to one type of receiver (a syslog server, a ticket system, yours).
 * It exports exactly one symbol, driftd_sink_v1, and hides everything else. The host calls the functions of
 * driftd_sink_table; inside such a call the plugin calls the functions of driftd_sink_host_table.
 *
 * The rules of provider.h for structs (size first, growth at the tail, zero means "as before", arrays by stride), text
 * and bytes, lifetimes ({call}, {out}, {user}, {process}, {instance}), threads, times and exceptions hold here without
 * a change, and so do its types: driftd_str, driftd_kv, driftd_call, driftd_instance, driftd_status, driftd_diagnostic,
 * driftd_health, driftd_offer. Where they say provider, read sink plugin. The tags in short:
 *   [pure]       any thread, also several at once; no I/O, no state, same answer each time
 *   [serial]     never two [serial] calls at once for one instance; open and close exclude every other call
 *   [concurrent] for one instance up to the number of calls that `describe` declares
 *   [call]       only on the thread and inside the call that owns the driftd_call handle or was given the callback
 *   [any]        any thread at any time while the instance lives
 *
 * What the plugin does and what the host does. The plugin only sends. The host stores events, chooses them by routes,
 * retries, and keeps dead letters. It never hands out two unsettled events of one order key at the same time: not in
 * one batch, and not in two batches that are under way. The next event of a key comes only after the one before it was
 * settled as DELIVERED or PERMANENT, which may be while the call that settled it still runs. So settle an event when
 * the receiver has it, and not before; then the receiver sees the events of each key in commit order. Between keys
 * there is no order.
 *
 * At least once. After a crash, a lost answer or a restart the same event comes again, under the same id. A receiver
 * that can drop duplicates should be given the id.
 *
 * What a receiver loses later. This ABI has no function that asks whether the receiver still has what it acknowledged:
 * the host takes DELIVERED as final and notices nothing if the receiver is wiped or restored from an older copy. Then
 * an operator sends the events again (`driftd replay`), which come with DRIFTD_EVENT_REPLAY.
 */
#ifndef DRIFTD_SINK_H
#define DRIFTD_SINK_H

#include "driftd/provider.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DRIFTD_SINK_ABI_MAJOR 1
#define DRIFTD_SINK_ABI_MINOR 0

/* ---- events ------------------------------------------------------------------------------------------------- */
#define DRIFTD_EVENT_REPLAY 1u /* an operator sends it again (`driftd replay`); newer ones may have been delivered */
#define DRIFTD_EVENT_AGENT 2u  /* about the agent itself and not about a backend: its data is another type */

/* The content types that this host can produce; see `bodies` of describe. */
/* The event whole, with its attributes. */
#define DRIFTD_BODY_CLOUDEVENTS_JSON "application/cloudevents+json"
/* Its data only: BackendChangeEvent of event.proto, with DRIFTD_EVENT_AGENT AgentEvent. */
#define DRIFTD_BODY_PROTOBUF "application/protobuf"

/* One committed event. Immutable: the same id always comes with the same content, but for the flag REPLAY. */
typedef struct driftd_event {
  uint32_t size;
  uint32_t flags;       /* DRIFTD_EVENT_*; ignore unknown ones */
  driftd_str id;        /* CloudEvents id, unique; printable ASCII without spaces, at most 255 bytes */
  driftd_str source;    /* CloudEvents source, `//default/driftd/redis` */
  driftd_str type;      /* CloudEvents type, `io.driftd.backend.config.updated.v1` */
  driftd_str subject;   /* CloudEvents subject, `cache/server/server`: backend, kind and id of the resource */
  driftd_str topic;     /* where a broker would publish it, `backend.cache.config.updated` */
  driftd_str order_key; /* the resource; never two events of one key under way. Also CloudEvents partitionkey */
  uint64_t sequence;    /* CloudEvents driftseq: rises by 1 for each event of a backend */
  uint64_t incarnation; /* CloudEvents driftincarnation: rises when the store lost commits; compare before sequence */
  int64_t time_ns;      /* CloudEvents time: of the commit, ns since the epoch */
  driftd_str content_type;     /* of `body`: one that describe asked for. Settle what you do not know as PERMANENT */
  driftd_str body;             /* at most 32 MiB; of the JSON form one object without line breaks */
  const driftd_kv* attributes; /* {call} what else is known, by name: "cluster", "provider", "backend",
                                * "backend_type", "change" (`config.updated`), "detected_by", "resource" (`kind/id`).
                                * Empty ones are left out; ignore names that you do not know. NULL with count 0 */
  uint32_t attribute_count;
  uint32_t attribute_stride; /* sizeof of one element */
} driftd_event;

/* The events of one deliver, 1 to the maximum that describe declares, all of different order keys. */
typedef struct driftd_batch {
  uint32_t size;
  uint32_t flags;             /* 0; ignore unknown ones */
  const driftd_event* events; /* {call} */
  uint32_t event_count;
  uint32_t event_stride; /* sizeof of one element */
} driftd_batch;

/* ---- verdicts ----------------------------------------------------------------------------------------------- */
/* DELIVERED also where a receiver cannot acknowledge (UDP) and the event was sent whole. RETRY_SINK is certain: no
 * connection, no login; the host pauses the sink. REFUSED may be about this event or about all (busy, no answer); the
 * host finds out which. Neither uses up an attempt of the event. */
#define DRIFTD_OUTCOME_DELIVERED 1   /* the receiver acknowledged it */
#define DRIFTD_OUTCOME_RETRY_EVENT 2 /* this event failed; uses up one attempt of its schedule */
#define DRIFTD_OUTCOME_RETRY_SINK 3  /* the endpoint failed */
#define DRIFTD_OUTCOME_REFUSED 4     /* the event or the endpoint failed */
#define DRIFTD_OUTCOME_PERMANENT 5   /* the receiver refuses this event for good; it becomes a dead letter */
#define DRIFTD_OUTCOME_DISABLED 6    /* the receiver asked never to be called again (HTTP 410); the sink stops */

/* The verdict about one event. */
typedef struct driftd_settlement {
  uint32_t size;
  uint32_t index;   /* of the event in the batch */
  uint32_t outcome; /* DRIFTD_OUTCOME_* */
  uint32_t reserved;
  int64_t retry_after_ms; /* as the receiver asks for it, at most 1 h; 0: the host decides */
  driftd_str detail;      /* for people, if it is not DELIVERED: `500 from logs.example.org: disk full`; at most 8 KiB
                           * are kept. Never contains a secret */
} driftd_settlement;

/* ---- host table: what a sink plugin may call ---------------------------------------------------------------- */
/* {process} No slot inside `size` is NULL; one behind it is a function that this (older) host does not have. */
typedef struct driftd_sink_host_table {
  uint32_t size;
  uint32_t minor; /* newest minor that the host speaks */
  /* [any] wall clock, ns since the epoch; injectable. */
  int64_t (*now)(void);
  /* [call] a log line with key/values; scrubbed of the instance's secrets, rate-limited. `kv` {call} may be NULL. */
  void (*log)(driftd_call call, int32_t level, driftd_str text, const driftd_kv* kv, uint32_t kv_count);
  /* [call] 1 when the host wants the call to end, else 0. */
  int32_t (*cancelled)(driftd_call call);
  /* [call] CLOCK_MONOTONIC ns; the worker is killed a grace time (2 s) after it. */
  int64_t (*deadline)(driftd_call call);
  /* [call] descriptor that becomes readable on cancel, open until the call returns; do not read or close. -1: none. */
  int32_t (*cancel_fd)(driftd_call call);
  /* [call] verdicts about events of the batch, in any order, each as soon as it is known: what is settled stays
   * settled, whatever happens afterwards. Only inside deliver, also after a cancel or the deadline. `settlements`
   * {call}, `stride` is sizeof of one element.
   * -> OK; INVALID: at least one was not taken (outside of deliver, an index beyond the batch, an unknown outcome, an
   * event that is settled: its first verdict stays), the others were; CANCELLED: the host is gone, return */
  driftd_status (*settle)(driftd_call call, const driftd_settlement* settlements, uint32_t count, uint32_t stride);
  /* [call] a diagnostic. */
  void (*diag)(driftd_call call, const driftd_diagnostic* diagnostic);
  /* [call] resolves a token found in a sensitive setting: calls `use` once before it returns, or not at all. -> OK,
   * INVALID, DENIED (a token that was not issued for this instance) */
  driftd_status (*secret)(driftd_call call, driftd_str token, driftd_use_fn use, void* user);
  /* [any] a host extension by id and revision, {process}; NULL when it is not offered. */
  const void* (*query)(driftd_str id, uint32_t revision);
} driftd_sink_host_table;

/* ---- sink table: what the host calls ------------------------------------------------------------------------ */
typedef struct driftd_sink_open_args {
  uint32_t size;
  uint32_t reserved;
  driftd_str sink;     /* the sink's name in the config, for log lines */
  driftd_str settings; /* JSON, validated against schema("settings"); sensitive values are tokens for secret() */
} driftd_sink_open_args;

/* {process} No slot inside `size` is NULL. */
typedef struct driftd_sink_table {
  uint32_t size;
  uint32_t reserved;
  /* [pure] pushes one JSON object, at most 1 MiB: {"id": "syslog", "version": "1.2.0", "title": "Syslog (RFC 5424)",
   * "bodies": content types in order of preference, of which the host sends the first that it can produce,
   * "batch": {"events": 1 to 256, "bytes": 1024 to 16777216; a larger event comes alone}, absent: {1, 16777216},
   * "concurrency": 1 to 64 calls of deliver at once, absent: 1,
   * "retry": "forever" (a receiver of your own: what fails is tried again without end) or "schedule" (a foreign one:
   * ten attempts in three days, then a dead letter), absent: "forever",
   * "flush": true if `flush` is implemented, "extensions": [{"id": "driftd.x", "revision": 1}]}. -> OK, INTERNAL */
  driftd_status (*describe)(driftd_push_fn push, void* user);
  /* [pure] pushes one JSON document, at most 1 MiB. `what` "settings": JSON Schema (draft 2020-12) of the settings; a
   * sensitive one has "writeOnly": true, a file has "format": "path", a Unix socket "format": "socket". -> OK,
   * NOT_FOUND (nothing pushed), INTERNAL */
  driftd_status (*schema)(driftd_str what, driftd_push_fn push, void* user);
  /* [serial] makes an instance; it need not connect to the receiver. `args` {call}, `out` {out}: untouched on failure,
   * and then close is not called. -> common */
  driftd_status (*open)(driftd_call call, const driftd_sink_open_args* args, driftd_instance* out);
  /* [concurrent] sends the events and settles each. `batch` {call}. An event that has no verdict when it returns is
   * never taken for delivered. Its verdict then follows from the status: RETRY_SINK after UNAVAILABLE,
   * UNAUTHENTICATED, DENIED, THROTTLED and CANCELLED, REFUSED after DEADLINE, RETRY_EVENT after everything else, also
   * OK. If the worker ends during the call, RETRY_SINK. -> common; OK if every event was settled, whatever the
   * verdicts */
  driftd_status (*deliver)(driftd_instance self, driftd_call call, const driftd_batch* batch);
  /* [concurrent] can the endpoint be reached? Pushes one health report within 1 s, also while deliver is blocked; it
   * does not count as one of the declared calls. It sends no event. An endpoint that is down is OK with
   * DRIFTD_HEALTH_DOWN. -> common */
  driftd_status (*probe)(driftd_instance self, driftd_call call, driftd_health_fn push, void* user);
  /* [concurrent] optional: returns OK when every event that was settled as DELIVERED before it was called is durable
   * at the receiver. Called before the host stores that they are delivered; on failure, and if the worker ended in
   * between, they are sent again. Never two at once; does not count as one of the declared calls. -> common */
  driftd_status (*flush)(driftd_instance self, driftd_call call);
  /* [any] makes blocked calls of the instance check cancelled(); no I/O, returns at once. */
  void (*wake)(driftd_instance self);
  /* [serial] ends an instance; no other call is in progress. Returns within the grace time. */
  void (*close)(driftd_instance self);
  /* [pure] an extension table by id and revision, {process}; NULL for every other id or revision. */
  const void* (*query)(driftd_str id, uint32_t revision);
} driftd_sink_table;

/* ---- entry -------------------------------------------------------------------------------------------------- */
typedef struct driftd_sink_accept {
  uint32_t size;
  uint32_t minor_built;  /* DRIFTD_SINK_ABI_MINOR of the header it was compiled with; also filled by a refusal */
  uint32_t minor_needed; /* oldest host minor that it works with; also filled by a refusal */
  uint32_t reserved;
  const driftd_sink_table* table; /* {process} static */
  driftd_str refusal; /* {process} why UNSUPPORTED, when it is not minor_needed: "runs in a worker only (Go)" */
} driftd_sink_accept;

/* The one exported symbol. [pure] `host` {process}, `offer` {call}: its minors are those of this ABI and not those of
 * provider.h; `out` {out}. May be called more than once and answers the same; does no I/O. -> OK, UNSUPPORTED
 * (minor_needed is above offer.minor_max, or `refusal` says why) */
DRIFTD_EXPORT driftd_status driftd_sink_v1(const driftd_sink_host_table* host, const driftd_offer* offer,
                                           driftd_sink_accept* out);

#ifdef __cplusplus
}
#endif
#endif /* DRIFTD_SINK_H */
