/* SPDX-License-Identifier: Apache-2.0 */
/* These misuse secrets. The secret is that of the setting `password`. */
#include <stdio.h>
#include <string.h>

#include "base.h"

#define DELIVER driftd_status faulty_deliver(driftd_instance self, driftd_call call, const driftd_batch* batch)

#if defined(FAULTY_asks_for_others)
static void ignore(void* user, const uint8_t* data, uint64_t len) { (void)user, (void)data, (void)len; }
DELIVER {
  base_host.secret(call, base_str("secret-1"), ignore, NULL);
  return base_deliver(self, call, batch);
}

#elif defined(FAULTY_tells_secret) /* in the detail of a verdict, when the login fails */
static void copy(void* user, const uint8_t* data, uint64_t len) {
  snprintf(user, 200, "login with %.*s failed", (int)len, (const char*)data);
}
DELIVER {
  char line[200] = "";
  if (((base_sink*)self)->token[0] == '\0') return base_deliver(self, call, batch);
  base_host.secret(call, base_str(((base_sink*)self)->token), copy, line);
  const driftd_status status = base_deliver(self, call, batch);
  if (status == DRIFTD_UNAVAILABLE) base_settle(call, 0, DRIFTD_OUTCOME_RETRY_SINK, line);
  return status;
}

#elif defined(FAULTY_keeps_secret)
static const volatile uint8_t* kept;
static void keep(void* user, const uint8_t* data, uint64_t len) {
  (void)user;
  kept = len > 0 ? data : NULL;
}
DELIVER {
  uint8_t first = 0;
  if (((base_sink*)self)->token[0] != '\0') base_host.secret(call, base_str(((base_sink*)self)->token), keep, NULL);
  if (kept != NULL) first = *kept;
  (void)first;
  return base_deliver(self, call, batch);
}

#elif defined(FAULTY_calls_in_use)
static void log_inside(void* user, const uint8_t* data, uint64_t len) {
  (void)data, (void)len;
  base_host.log(*(driftd_call*)user, DRIFTD_LOG_INFO, base_str("got the password"), NULL, 0);
}
DELIVER {
  if (((base_sink*)self)->token[0] != '\0')
    base_host.secret(call, base_str(((base_sink*)self)->token), log_inside, &call);
  return base_deliver(self, call, batch);
}
#endif
