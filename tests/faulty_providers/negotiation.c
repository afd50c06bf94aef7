/* SPDX-License-Identifier: Apache-2.0 */
/* These are wrong about versions, sizes or extensions. */
#include <stddef.h>
#include <string.h>

#include "base.h"

#if defined(FAULTY_wrong_version)
driftd_status faulty_entry(const driftd_host_table* host, const driftd_offer* offer, driftd_accept* out) {
  base_entry(host, offer, out);
  out->minor_built = 4;
  out->minor_needed = 3;
  return offer->minor_max >= 3 ? DRIFTD_OK : DRIFTD_UNSUPPORTED;
}

#elif defined(FAULTY_accepts_anything)
driftd_status faulty_entry(const driftd_host_table* host, const driftd_offer* offer, driftd_accept* out) {
  base_entry(host, offer, out);
  out->minor_built = 4;
  out->minor_needed = 3;
  return DRIFTD_OK;
}

#elif defined(FAULTY_two_faced)
driftd_status faulty_entry(const driftd_host_table* host, const driftd_offer* offer, driftd_accept* out) {
  static driftd_provider_table faces[2];
  static unsigned asked;
  base_entry(host, offer, out);
  faces[asked % 2] = *out->table;
  out->table = &faces[asked++ % 2];
  return DRIFTD_OK;
}

#elif defined(FAULTY_exact_size)
driftd_status faulty_entry(const driftd_host_table* host, const driftd_offer* offer, driftd_accept* out) {
  const int same = host->size == sizeof *host && offer->size == sizeof *offer && out->size == sizeof *out;
  return same ? base_entry(host, offer, out) : DRIFTD_INVALID;
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
driftd_status faulty_entry(const driftd_host_table* host, const driftd_offer* offer, driftd_accept* out) {
  read_behind(offer);
  return base_entry(host, offer, out);
}
driftd_status faulty_refresh(driftd_instance self, driftd_call call, const driftd_refresh_args* args,
                             driftd_refresh_result* result) {
  read_behind(args);
  return base_refresh(self, call, args, result);
}

#elif defined(FAULTY_writes_past) || defined(FAULTY_writes_past_accept)
static void write_behind(void* given) {
  uint32_t size;
  memcpy(&size, given, sizeof size);
  memset((char*)given + size, 0x5a, sizeof(uint64_t));
}
#ifdef FAULTY_writes_past_accept
driftd_status faulty_entry(const driftd_host_table* host, const driftd_offer* offer, driftd_accept* out) {
  write_behind(out);
  return base_entry(host, offer, out);
}
#else
driftd_status faulty_refresh(driftd_instance self, driftd_call call, const driftd_refresh_args* args,
                             driftd_refresh_result* result) {
  write_behind(result);
  return base_refresh(self, call, args, result);
}
#endif

#elif defined(FAULTY_null_slot)
driftd_status faulty_entry(const driftd_host_table* host, const driftd_offer* offer, driftd_accept* out) {
  static driftd_provider_table table;
  base_entry(host, offer, out);
  table = *out->table;
  table.read = NULL;
  out->table = &table;
  return DRIFTD_OK;
}

#elif defined(FAULTY_yes_to_all)
const void* faulty_query(driftd_str id, uint32_t revision) {
  (void)id, (void)revision;
  return base_query(base_str(DRIFTD_EXT_WATCH), DRIFTD_EXT_WATCH_REVISION);
}

#elif defined(FAULTY_half_watch)
const void* faulty_query(driftd_str id, uint32_t revision) {
  (void)id, (void)revision;
  return NULL;
}

#elif defined(FAULTY_half_describe)
driftd_status faulty_describe(driftd_push_fn push, void* user) {
  return base_push(push, user,
                   "{\"id\":\"half_describe\",\"version\":\"1.0\",\"types\":[\"half_describe\"],"
                   "\"kinds\":[\"topic\",\"role\"],\"concurrency\":4,\"diff\":true,"
                   "\"metrics\":[{\"name\":\"things\",\"unit\":\"1\"}]}");
}
#endif
