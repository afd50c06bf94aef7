/* SPDX-License-Identifier: Apache-2.0 */
/* These describe themselves or their failures wrongly. */
#include <stdlib.h>
#include <string.h>

#include "base.h"

#if defined(FAULTY_bad_describe)
driftd_status faulty_describe(driftd_push_fn push, void* user) {
  return base_push(push, user,
                   "{\"id\":\"bad_describe\",\"version\":\"1.0\",\"title\":\"Lines\",\"bodies\":["
                   "\"application/cloudevents+json\"],\"batch\":{\"events\":100000},\"concurrency\":4,\"flush\":true}");
}

#elif defined(FAULTY_bad_settings_schema)
driftd_status faulty_schema(driftd_str what, driftd_push_fn push, void* user) {
  if (!base_is(what, "settings")) return base_schema(what, push, user);
  return base_push(push, user,
                   "{\"type\":\"object\",\"allOf\":[{\"required\":[\"address\"]}],\"properties\":{\"address\":{"
                   "\"type\":\"string\"},\"password\":{\"type\":\"string\",\"writeOnly\":true}}}");
}

#elif defined(FAULTY_schema_of_anything)
driftd_status faulty_schema(driftd_str what, driftd_push_fn push, void* user) {
  (void)what;
  return base_schema(base_str("settings"), push, user);
}

#elif defined(FAULTY_settings_crash)
driftd_status faulty_open(driftd_call call, const driftd_sink_open_args* args, driftd_instance* out) {
  driftd_str value;
  if (base_setting(args->settings, "address", &value) && value.len == 0) abort();
  return base_open(call, args, out);
}

#elif defined(FAULTY_mute_failure)
driftd_status faulty_deliver(driftd_instance self, driftd_call call, const driftd_batch* batch) {
  return base_host.cancelled(call) ? DRIFTD_CANCELLED : base_deliver(self, call, batch);
}

#elif defined(FAULTY_invalid_utf8)
driftd_status faulty_deliver(driftd_instance self, driftd_call call, const driftd_batch* batch) {
  base_host.log(call, DRIFTD_LOG_INFO,
                base_str("Gr\xfc\xdf"
                         "e"),
                NULL, 0);
  return base_deliver(self, call, batch);
}
#endif
