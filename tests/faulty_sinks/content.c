/* SPDX-License-Identifier: Apache-2.0 */
/* These cannot cope with some events. */
#include <stdlib.h>
#include <string.h>

#include "base.h"

#define DELIVER driftd_status faulty_deliver(driftd_instance self, driftd_call call, const driftd_batch* batch)
#define SEND int faulty_send(base_sink* self, driftd_call call, int fd, const driftd_event* event)

#if defined(FAULTY_cuts_large) /* a buffer of 64 KiB, and nobody looks at what did not fit */
SEND {
  driftd_event cut = *event;
  if (cut.body.len > 65536) cut.body.len = 65536;
  return base_send(self, call, fd, &cut);
}

#elif defined(FAULTY_ascii_only) /* tries again what it cannot send */
SEND {
  for (uint64_t i = 0; i < event->body.len; ++i)
    if ((unsigned char)event->body.data[i] > 127) return kGone;
  return base_send(self, call, fd, event);
}

#elif defined(FAULTY_remembers_keys)
static struct seen {
  struct seen* next;
  char key[64];
}* seen;
SEND {
  const uint64_t len = event->order_key.len < 63 ? event->order_key.len : 63;
  struct seen* one = seen;
  while (one != NULL && (strlen(one->key) != len || memcmp(one->key, event->order_key.data, len) != 0)) one = one->next;
  if (one == NULL) {
    one = calloc(1, sizeof *one);
    if (one == NULL) return kGone;
    memcpy(one->key, event->order_key.data, len);
    one->next = seen;
    seen = one;
  }
  return base_send(self, call, fd, event);
}

#elif defined(FAULTY_knows_all_attributes)
DELIVER {
  const driftd_event* event = base_event(batch, 0);
  if (event->attribute_count <= 7) return base_deliver(self, call, batch);
  base_settle(call, 0, DRIFTD_OUTCOME_PERMANENT, "it has an unknown attribute");
  return DRIFTD_OK;
}

#elif defined(FAULTY_retries_unknown)
DELIVER {
  if (base_is(base_event(batch, 0)->content_type, DRIFTD_BODY_CLOUDEVENTS_JSON)) return base_deliver(self, call, batch);
  base_settle(call, 0, DRIFTD_OUTCOME_RETRY_SINK, "a body of an unknown type");
  return DRIFTD_OK;
}
#endif
