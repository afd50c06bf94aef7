/* SPDX-License-Identifier: Apache-2.0 */
/* These misuse secrets. The secret is that of the setting `password`. */
#include <stdio.h>
#include <string.h>

#include "base.h"

#define REFRESH                                                                                         \
  driftd_status faulty_refresh(driftd_instance self, driftd_call call, const driftd_refresh_args* args, \
                               driftd_refresh_result* result)

#if defined(FAULTY_asks_for_others)
static void ignore(void* user, const uint8_t* data, uint64_t len) { (void)user, (void)data, (void)len; }
REFRESH {
  base_host.secret(call, base_str("secret-1"), ignore, NULL);
  base_host.secret(call, base_str("token-of-somebody-else"), ignore, NULL);
  return base_refresh(self, call, args, result);
}

#elif defined(FAULTY_tells_secret)
static void copy(void* user, const uint8_t* data, uint64_t len) {
  snprintf(user, 200, "logging in with %.*s", (int)len, (const char*)data);
}
REFRESH {
  char line[200] = "";
  base_host.secret(call, base_str(((base_instance*)self)->token), copy, line);
  base_host.log(call, DRIFTD_LOG_INFO, base_str(line), NULL, 0);
  return base_refresh(self, call, args, result);
}

#elif defined(FAULTY_keeps_secret)
static const volatile uint8_t* kept;
static void keep(void* user, const uint8_t* data, uint64_t len) {
  (void)user;
  kept = len > 0 ? data : NULL;
}
REFRESH {
  uint8_t first = 0;
  base_host.secret(call, base_str(((base_instance*)self)->token), keep, NULL);
  if (kept != NULL) first = *kept;
  (void)first;
  return base_refresh(self, call, args, result);
}

#elif defined(FAULTY_calls_in_use)
static void log_inside(void* user, const uint8_t* data, uint64_t len) {
  (void)data, (void)len;
  base_host.log(*(driftd_call*)user, DRIFTD_LOG_INFO, base_str("got the password"), NULL, 0);
}
REFRESH {
  base_host.secret(call, base_str(((base_instance*)self)->token), log_inside, &call);
  return base_refresh(self, call, args, result);
}
#endif
