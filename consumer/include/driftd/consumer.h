/* SPDX-License-Identifier: Apache-2.0
 * The C face of the consumer library (docs/consume.md). Strings are UTF-8 and end with a zero byte; those that the
 * library gets are copied, those that it gives to a call end with the call. Where a function takes `error` and
 * `error_size`, it writes a message there when it fails, cut to the size; both may be 0. */
#ifndef DRIFTD_CONSUMER_H
#define DRIFTD_CONSUMER_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct driftd_consumer driftd_consumer;
/* One use of a slot's connection: while it lasts, the connection is not released. */
typedef struct driftd_slot_use driftd_slot_use;

typedef struct driftd_slot_binding {
  const char* slot;
  const char* backend;
  const char* slot_type;         /* the application's own word; may be null */
  const char* const* alternates; /* backends to use while `backend` cannot be; null if there are none */
  size_t alternate_count;
} driftd_slot_binding;

typedef struct driftd_credential {
  const char* member; /* `username`, `password`, … */
  const char* value;  /* may contain zero bytes; one more follows */
  size_t value_size;
} driftd_credential;

typedef struct driftd_slot_config {
  const char* backend;
  const char* type;
  const char* endpoint; /* `host:port`, or several with commas between them */
  const char* host;     /* of the first endpoint */
  int port;             /* 0 if there is none */
  const char* config_json;
  const driftd_credential* credentials;
  size_t credential_count;
} driftd_slot_config;

/* What the application implements. Each call must end within seconds and must not throw. */
typedef struct driftd_slot_calls {
  /* Connects and returns the connection, or null and an error. Several threads at once. */
  void* (*connect)(void* user, const driftd_slot_binding* binding, const driftd_slot_config* config, char* error,
                   size_t error_size);
  /* Takes other credentials. Not 0: it cannot; the slots of the backend are connected again. */
  int (*update_credentials)(void* connection, const driftd_slot_config* config, char* error, size_t error_size);
  /* Ends the connection. Uses that began earlier may still hold it. */
  void (*disconnect)(void* connection);
  /* Frees it: nobody holds it any more. Any thread. */
  void (*release)(void* connection);
} driftd_slot_calls;

typedef struct driftd_consumer_settings {
  size_t size; /* sizeof(driftd_consumer_settings): a later version adds members at the end */
  const char* pattern;
  const char* instance; /* null: none */
  const driftd_slot_binding* slots;
  size_t slot_count;
  const char* const* nats_servers; /* `nats://host:4222` */
  size_t nats_server_count;
  const char* nats_stream;           /* null: DRIFT */
  const char* nats_credentials_file; /* null: none */
  const char* nats_tls_ca;           /* null: the system's, if the scheme is tls:// */
  const char* checkpoint;            /* null: memory only */
  const char* backend_config_path;   /* null: $BACKEND_CONFIG_PATH, or /config/backends.json */
  unsigned start_timeout_ms;         /* 0: 30 s */
  /* Any thread. `level`: 0 debug, 1 info, 2 warning, 3 error. Null: stderr. */
  void (*log)(void* user, int level, const char* text);
} driftd_consumer_settings;

/* Returns null and an error for settings that cannot work. `user` is given to `connect` and `log`. */
driftd_consumer* driftd_consumer_create(const driftd_consumer_settings* settings, const driftd_slot_calls* calls,
                                        void* user, char* error, size_t error_size);
/* Binds all slots, then subscribes. Returns 0, or -1 and an error. Once. */
int driftd_consumer_start(driftd_consumer* consumer, char* error, size_t error_size);
/* Stops and frees. All uses must have ended. Null is allowed. */
void driftd_consumer_destroy(driftd_consumer* consumer);

/* Begins a use of a slot's connection for one operation. Null while there is none. Any thread. */
driftd_slot_use* driftd_consumer_use(driftd_consumer* consumer, const char* slot);
void* driftd_slot_use_connection(const driftd_slot_use* use);
/* Ends a use. `broken` not 0: the operation failed because of the connection, which is replaced then. */
void driftd_slot_use_end(driftd_slot_use* use, int broken);

/* Writes the metrics in Prometheus' text format, cut to `size` with the zero byte. Returns the size of all without it.
 */
size_t driftd_consumer_metrics(const driftd_consumer* consumer, char* text, size_t size);

#ifdef __cplusplus
}
#endif

#endif
