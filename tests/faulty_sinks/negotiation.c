/* SPDX-License-Identifier: Apache-2.0 */
/* These are wrong about versions, sizes or extensions. */
#include <string.h>

#include "base.h"

#define ENTRY \
  driftd_status faulty_entry(const driftd_sink_host_table* host, const driftd_offer* offer, driftd_sink_accept* out)

#if defined(FAULTY_wrong_version)
ENTRY {
  base_entry(host, offer, out);
  out->minor_built = 4;
  out->minor_needed = 3;
  return offer->minor_max >= 3 ? DRIFTD_OK : DRIFTD_UNSUPPORTED;
}

#elif defined(FAULTY_accepts_anything)
ENTRY {
  base_entry(host, offer, out);
  out->minor_built = 4;
  out->minor_needed = 3;
  return DRIFTD_OK;
}

#elif defined(FAULTY_two_faced)
ENTRY {
  static driftd_sink_table faces[2];
  static unsigned asked;
  base_entry(host, offer, out);
  faces[asked % 2] = *out->table;
  out->table = &faces[asked++ % 2];
  return DRIFTD_OK;
}

#elif defined(FAULTY_own_stride) /* walks the batch by the size of its own struct */
driftd_status faulty_deliver(driftd_instance self, driftd_call call, const driftd_batch* batch) {
  driftd_batch mine = *batch;
  mine.event_stride = sizeof(driftd_event);
  return base_deliver(self, call, &mine);
}

#elif defined(FAULTY_reads_past)
/* Behaves as if built with a header with longer structs, without checking their size. */
static uint32_t read_behind(const void* given) {
  const volatile unsigned char* bytes = given;
  uint32_t size;
  uint32_t sum = 0;
  memcpy(&size, given, sizeof size);
  for (uint32_t i = size; i < size + 64; ++i) sum += bytes[i];
  return sum;
}
driftd_status faulty_deliver(driftd_instance self, driftd_call call, const driftd_batch* batch) {
  read_behind(base_event(batch, batch->event_count - 1));
  return base_deliver(self, call, batch);
}

#elif defined(FAULTY_writes_past)
ENTRY {
  uint32_t size;
  memcpy(&size, out, sizeof size);
  memset((char*)out + size, 0x5a, sizeof(uint64_t));
  return base_entry(host, offer, out);
}

#elif defined(FAULTY_null_slot)
ENTRY {
  static driftd_sink_table table;
  base_entry(host, offer, out);
  table = *out->table;
  table.probe = NULL;
  out->table = &table;
  return DRIFTD_OK;
}

#elif defined(FAULTY_yes_to_all)
const void* faulty_query(driftd_str id, uint32_t revision) {
  static const struct {
    uint32_t size, reserved;
    void* slot;
  } table = {sizeof table, 0, NULL};
  (void)id, (void)revision;
  return &table;
}
#endif
