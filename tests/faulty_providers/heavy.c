/* SPDX-License-Identifier: Apache-2.0 */
/* heavy: sound, but each topic has a body of 990,000 bytes and 90,000 values. */
#include <stdio.h>
#include <string.h>

#include "base.h"

enum { kValues = 90000, kWidth = 11, kRoom = kValues * kWidth + 64 };

void faulty_record(base_instance* self, driftd_record* record, char* body) {
  static _Thread_local char large[kRoom];
  (void)self, (void)body;
  if (!base_is(record->kind, kKindNames[kTopics])) return;
  int at = snprintf(large, sizeof large, "{\"partitions\":3,\"owner\":[");
  for (int i = 0; i < kValues; ++i)
    at += snprintf(large + at, sizeof large - (size_t)at, "%s%d", i == 0 ? "" : ",", 1000000000 + i);
  at += snprintf(large + at, sizeof large - (size_t)at, "]}");
  record->body = (driftd_str){large, (uint64_t)at};
}
