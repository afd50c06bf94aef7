/* SPDX-License-Identifier: Apache-2.0 */
/* These misuse their own memory or the host's. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base.h"

/* Uses memory in a way that the compiler cannot remove. */
static void* volatile kept;
__attribute__((unused)) static void leak(size_t bytes) {
  kept = malloc(bytes);
  if (kept != NULL) memset(kept, 1, bytes);
}

#define OPEN driftd_status faulty_open(driftd_call call, const driftd_sink_open_args* args, driftd_instance* out)
#define DELIVER driftd_status faulty_deliver(driftd_instance self, driftd_call call, const driftd_batch* batch)

#if defined(FAULTY_keeps_input) /* reads its settings only when it connects */
static driftd_str settings;     /* from driftd_sink_open_args: it belongs to the host */
OPEN {
  settings = args->settings;
  return base_open(call, args, out);
}
DELIVER {
  if (!base_read_settings(self, settings))
    return base_fail(call, DRIFTD_INVALID, "settings.address: expected an address");
  return base_deliver(self, call, batch);
}

#elif defined(FAULTY_writes_input)
DELIVER {
  *(volatile char*)base_event(batch, 0)->id.data = 'c';
  return base_deliver(self, call, batch);
}

#elif defined(FAULTY_strlen_user)
int faulty_send(base_sink* self, driftd_call call, int fd, const driftd_event* event) {
  driftd_event measured = *event;
  const char* volatile text = event->body.data;
  if (strlen(text) < measured.body.len) measured.body.len = strlen(text);
  return base_send(self, call, fd, &measured);
}

#elif defined(FAULTY_leaks_open)
OPEN {
  leak(16 << 10);
  return base_open(call, args, out);
}

#elif defined(FAULTY_leaks_descriptors)
OPEN {
  const driftd_status status = base_open(call, args, out);
  if (status == DRIFTD_OK && dup(((base_sink*)*out)->nudge) < 0) abort();
  return status;
}

#elif defined(FAULTY_leaks_deliver)
DELIVER {
  leak(16 << 10);
  return base_deliver(self, call, batch);
}

#elif defined(FAULTY_half_open)
OPEN {
  static int nothing;
  *out = &nothing;
  return base_open(call, args, out);
}

#elif defined(FAULTY_alloc_blind)
DELIVER {
  char* line = malloc(200);
  *(volatile char*)line = 'x';
  free(line);
  return base_deliver(self, call, batch);
}
#endif
