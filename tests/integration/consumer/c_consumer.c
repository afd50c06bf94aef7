/* SPDX-License-Identifier: Apache-2.0
 * A consumer in C: a slot with one hiredis connection behind a mutex. */
#include "c_consumer.h"

#include <hiredis/hiredis.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct connection {
  pthread_mutex_t mutex;
  redisContext* redis;
} connection;

static const char* credential(const driftd_slot_config* config, const char* member) {
  for (size_t i = 0; i < config->credential_count; ++i) {
    if (strcmp(config->credentials[i].member, member) == 0) return config->credentials[i].value;
  }
  return "";
}

static int log_in(redisContext* redis, const driftd_slot_config* config, char* error, size_t size) {
  redisReply* reply = redisCommand(redis, "AUTH %s %s", credential(config, "username"), credential(config, "password"));
  const int good = reply != NULL && reply->type != REDIS_REPLY_ERROR;
  if (!good) snprintf(error, size, "AUTH: %s", reply != NULL ? reply->str : redis->errstr);
  if (reply != NULL) freeReplyObject(reply);
  return good ? 0 : -1;
}

static void* connect_slot(void* user, const driftd_slot_binding* binding, const driftd_slot_config* config, char* error,
                          size_t size) {
  (void)user;
  (void)binding;
  const struct timeval time_out = {2, 0};
  redisContext* redis = redisConnectWithTimeout(config->host, config->port, time_out);
  if (redis == NULL || redis->err != 0) {
    snprintf(error, size, "connect: %s", redis == NULL ? "no memory" : redis->errstr);
    if (redis != NULL) redisFree(redis);
    return NULL;
  }
  if (log_in(redis, config, error, size) != 0) {
    redisFree(redis);
    return NULL;
  }
  connection* out = calloc(1, sizeof *out);
  pthread_mutex_init(&out->mutex, NULL);
  out->redis = redis;
  return out;
}

static int update_credentials(void* slot, const driftd_slot_config* config, char* error, size_t size) {
  connection* self = slot;
  pthread_mutex_lock(&self->mutex);
  const int done = log_in(self->redis, config, error, size);
  pthread_mutex_unlock(&self->mutex);
  return done;
}

static void disconnect(void* slot) { (void)slot; }

static void release(void* slot) {
  connection* self = slot;
  redisFree(self->redis);
  pthread_mutex_destroy(&self->mutex);
  free(self);
}

driftd_consumer* c_consumer_start(const char* nats, const char* backends, char* error, size_t size) {
  const driftd_slot_binding slot = {"state_store", "cache", "keyvalue", NULL, 0};
  const driftd_consumer_settings settings = {.size = sizeof settings,
                                             .pattern = "order-consumer",
                                             .slots = &slot,
                                             .slot_count = 1,
                                             .nats_servers = &nats,
                                             .nats_server_count = 1,
                                             .backend_config_path = backends};
  const driftd_slot_calls calls = {connect_slot, update_credentials, disconnect, release};
  driftd_consumer* consumer = driftd_consumer_create(&settings, &calls, NULL, error, size);
  if (consumer == NULL || driftd_consumer_start(consumer, error, size) == 0) return consumer;
  driftd_consumer_destroy(consumer);
  return NULL;
}

long long c_consumer_count(driftd_consumer* consumer) {
  driftd_slot_use* use = driftd_consumer_use(consumer, "state_store");
  if (use == NULL) return -1;
  connection* self = driftd_slot_use_connection(use);
  pthread_mutex_lock(&self->mutex);
  redisReply* reply = redisCommand(self->redis, "INCR orders");
  pthread_mutex_unlock(&self->mutex);
  const long long out = reply != NULL && reply->type == REDIS_REPLY_INTEGER ? reply->integer : -1;
  const int broken = reply == NULL;
  if (reply != NULL) freeReplyObject(reply);
  driftd_slot_use_end(use, broken);
  return out;
}
