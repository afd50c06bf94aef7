/* SPDX-License-Identifier: Apache-2.0 */
/* Providers with all extensions: sound_extended, and one faulty provider for each extension. */
#include "driftd/ext/apply.h"
#include "driftd/ext/discover.h"
#include "driftd/ext/upgrade.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base.h"

#if defined(FAULTY_bad_discover)
enum { kFirst = 1, kSecond = 1, kDryIsWet = 0, kForgetful = 0 }; /* one backend twice, the other never */
#elif defined(FAULTY_wet_dry_run)
enum { kFirst = 0, kSecond = 1, kDryIsWet = 1, kForgetful = 0 };
#elif defined(FAULTY_bad_upgrade)
enum { kFirst = 0, kSecond = 1, kDryIsWet = 0, kForgetful = 1 };
#else
enum { kFirst = 0, kSecond = 1, kDryIsWet = 0, kForgetful = 0 };
#endif
#if defined(FAULTY_half_apply)
enum { kHalf = 1, kBlind = 0 }; /* sets what it can and says nothing of the rest */
#elif defined(FAULTY_blind_apply)
enum { kHalf = 0, kBlind = 1 }; /* does not look whether the value is still the one that was judged */
#else
enum { kHalf = 0, kBlind = 0 };
#endif

/* ---- discover ------------------------------------------------------------------------------------------------ */

static driftd_status push_backend(const char* name, const char* type, driftd_discovered_fn push, void* user) {
  const driftd_str endpoint = base_str("db.example:5432");
  const driftd_discovered backend = {.size = sizeof backend,
                                     .name = base_str(name),
                                     .type = base_str(type),
                                     .endpoints = &endpoint,
                                     .endpoint_count = 1,
                                     .observed_ns = base_host.now()};
  return push(user, &backend);
}
static driftd_status discover(driftd_instance self, driftd_call call, const driftd_discover_args* args,
                              driftd_discovered_fn push, void* user, driftd_discover_result* result) {
  static const char* const kNames[] = {"cache", "orders"};
  static const char* const kTypes[] = {"redis", "postgres"};
  const int which[] = {kFirst, kSecond};
  driftd_status status = base_may_go_on(call);
  (void)self;
  for (int i = 0; i < 2 && status == DRIFTD_OK; ++i) {
    int wanted = args->type_count == 0;
    for (uint64_t t = 0; t < args->type_count; ++t) wanted |= base_is(args->types[t], kTypes[which[i]]);
    if (wanted) status = push_backend(kNames[which[i]], kTypes[which[i]], push, user);
  }
  result->complete = status == DRIFTD_OK;
  return status == DRIFTD_OK ? DRIFTD_OK : base_fail(call, status, "the discovery was cut short");
}

/* ---- apply: `limit` of a role -------------------------------------------------------------------------------- */

static struct role {
  char version[16], limit[16], key[129];
  unsigned changes;
} roles[kRolesCount] = {{.version = "1", .limit = "0"},
                        {.version = "1", .limit = "10"},
                        {.version = "1", .limit = "20"},
                        {.version = "1", .limit = "30"}};

static struct role* find_role(driftd_str kind, driftd_str id) {
  char name[32];
  for (int i = 0; i < kRolesCount; ++i) {
    snprintf(name, sizeof name, "role-%03d", i);
    if (base_is(kind, "role") && base_is(id, name)) return &roles[i];
  }
  return NULL;
}
void faulty_record(base_instance* self, driftd_record* record, char* body) {
  struct role* role = find_role(record->kind, record->id);
  (void)self;
  if (role == NULL) return;
  snprintf(body, kBody, "{\"login\":true,\"limit\":%s}", role->limit);
  record->body = base_str(body);
  record->version = base_str(role->version);
  record->schema_revision = 2;
}

static driftd_status answer(uint32_t outcome, uint32_t changed, const char* version, const char* text,
                            driftd_applied_fn push, void* user) {
  const driftd_applied applied = {.size = sizeof applied,
                                  .outcome = outcome,
                                  .changed = changed,
                                  .version = base_str(version),
                                  .text = base_str(text)};
  push(user, &applied);
  return DRIFTD_OK;
}
/* Reads the limit to write back. Returns 0 if the changes are about something else. */
static int wanted_limit(const driftd_apply_args* args, char limit[16]) {
  const driftd_change* c = args->changes;
  if ((args->change_count != 1 && !kHalf) || !base_is(c->path, "limit") || c->new_value.len == 0 ||
      c->new_value.len >= 9)
    return 0;
  snprintf(limit, 16, "%.*s", (int)c->new_value.len, c->new_value.data);
  return strspn(limit, "0123456789") == c->new_value.len && (limit[0] != '0' || limit[1] == 0);
}
static driftd_status apply(driftd_instance self, driftd_call call, const driftd_apply_args* args,
                           driftd_applied_fn push, void* user) {
  char limit[16];
  struct role* role = find_role(args->kind, args->id);
  const int dry = (args->flags & DRIFTD_APPLY_DRY_RUN) != 0;
  const driftd_status status = base_may_go_on(call);
  (void)self;
  if (status != DRIFTD_OK) return status;
  if (role == NULL) return base_fail(call, DRIFTD_NOT_FOUND, "only roles that are there can be applied");
  if (args->idempotency_key.len == 0 || args->idempotency_key.len > 128)
    return base_fail(call, DRIFTD_INVALID, "the idempotency key must have 1 to 128 bytes");
  if (base_is(args->idempotency_key, role->key)) return answer(DRIFTD_APPLY_SUCCESS, 0, role->version, "", push, user);
  if (args->expected_version.len > 0 && !base_is(args->expected_version, role->version))
    return base_fail(call, DRIFTD_CONFLICT, "the role changed since it was judged");
  if (!kBlind && args->expected_version.len == 0 && args->change_count > 0 &&
      !base_is(args->changes->old_value, role->limit))
    return base_fail(call, DRIFTD_CONFLICT, "the old value is not there any more");
  if (!wanted_limit(args, limit))
    return answer(DRIFTD_APPLY_FAILED, 0, role->version, "only `limit` can be set, to a number", push, user);
  if (strcmp(limit, role->limit) == 0) return answer(DRIFTD_APPLY_SUCCESS, 0, role->version, "", push, user);
  if (dry && !kDryIsWet) return answer(DRIFTD_APPLY_SUCCESS, 0, role->version, "", push, user);
  memcpy(role->limit, limit, sizeof limit);
  snprintf(role->version, sizeof role->version, "%u", ++role->changes + 1);
  if (!dry) snprintf(role->key, sizeof role->key, "%.*s", (int)args->idempotency_key.len, args->idempotency_key.data);
  return answer(DRIFTD_APPLY_SUCCESS, !dry, role->version, "", push, user);
}

/* ---- upgrade: in revision 1 of a role `limit` was called `max` ------------------------------------------------ */

driftd_status faulty_schema(driftd_str what, driftd_push_fn push, void* user) {
  if (!base_is(what, "role")) return base_schema(what, push, user);
  return base_push(
      push, user,
      "{\"schema\":\"driftd-schema/1\",\"kind\":\"role\",\"revision\":2,\"title\":\"a role\",\"attributes\":{"
      "\"login\":{\"type\":\"bool\"},\"limit\":{\"type\":\"int\"}}}");
}
static driftd_status upgrade(const driftd_upgrade_args* args, driftd_push_fn push, void* user) {
  static unsigned asked;
  driftd_str max;
  char body[kBody];
  if (!base_is(args->kind, "role") || args->from_revision != 1) return DRIFTD_UNSUPPORTED;
  if (args->body.len < 2 || args->body.data[0] != '{') return DRIFTD_INVALID;
  if (!base_setting(args->body, "max", &max) || max.len > 100) max = base_str("0");
  if (kForgetful) snprintf(body, sizeof body, "{\"login\":true,\"limit\":%u}", ++asked);
  if (!kForgetful) snprintf(body, sizeof body, "{\"login\":true,\"limit\":%.*s}", (int)max.len, max.data);
  return base_push(push, user, body);
}

/* ---- describe and query --------------------------------------------------------------------------------------- */

driftd_status faulty_describe(driftd_push_fn push, void* user) {
  char text[768];
  snprintf(text, sizeof text,
           "{\"id\":\"%s\",\"version\":\"1.0\",\"types\":[\"%s\"],\"kinds\":[\"topic\",\"role\"],\"concurrency\":4,"
           "\"diff\":true,\"metrics\":[{\"name\":\"things\",\"unit\":\"1\"}],\"extensions\":["
           "{\"id\":\"driftd.watch\",\"revision\":1},{\"id\":\"driftd.discover\",\"revision\":1},"
           "{\"id\":\"driftd.apply\",\"revision\":1},{\"id\":\"driftd.upgrade\",\"revision\":1}]}",
           base_name, base_name);
  return base_push(push, user, text);
}
const void* faulty_query(driftd_str id, uint32_t revision) {
  static const driftd_discover_table kDiscover = {sizeof kDiscover, 0, discover};
  static const driftd_apply_table kApply = {sizeof kApply, 0, apply};
  static const driftd_upgrade_table kUpgrade = {sizeof kUpgrade, 0, upgrade};
  if (revision == 1 && base_is(id, DRIFTD_EXT_DISCOVER)) return &kDiscover;
  if (revision == 1 && base_is(id, DRIFTD_EXT_APPLY)) return &kApply;
  if (revision == 1 && base_is(id, DRIFTD_EXT_UPGRADE)) return &kUpgrade;
  return base_query(id, revision);
}
