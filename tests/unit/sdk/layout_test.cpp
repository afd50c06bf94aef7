// SPDX-License-Identifier: Apache-2.0
// Sizes and last fields of everything that crosses, on LP64: a struct only ever grows behind these.
#include <gtest/gtest.h>

#include <cstddef>

#include "driftd/ext/watch.h"

namespace {

struct Layout {
  const char* name;
  std::size_t size, released_size, last_field, released_last_field;
};

TEST(AbiLayout, StructsKeepTheFieldsOfRevisionOneDotZeroInPlace) {
  const Layout layouts[] = {
      {"driftd_str", sizeof(driftd_str), 16, offsetof(driftd_str, len), 8},
      {"driftd_kv", sizeof(driftd_kv), 40, offsetof(driftd_kv, value), 24},
      {"driftd_identity", sizeof(driftd_identity), 40, offsetof(driftd_identity, id), 24},
      {"driftd_unread", sizeof(driftd_unread), 40, offsetof(driftd_unread, reason), 24},
      {"driftd_record", sizeof(driftd_record), 200, offsetof(driftd_record, reserved), 196},
      {"driftd_mark", sizeof(driftd_mark), 48, offsetof(driftd_mark, count), 40},
      {"driftd_diagnostic", sizeof(driftd_diagnostic), 96, offsetof(driftd_diagnostic, retry_after_ms), 88},
      {"driftd_health", sizeof(driftd_health), 80, offsetof(driftd_health, server_version), 64},
      {"driftd_host_table", sizeof(driftd_host_table), 104, offsetof(driftd_host_table, query), 96},
      {"driftd_open_args", sizeof(driftd_open_args), 40, offsetof(driftd_open_args, settings), 24},
      {"driftd_refresh_args", sizeof(driftd_refresh_args), 40, offsetof(driftd_refresh_args, reserved), 36},
      {"driftd_refresh_result", sizeof(driftd_refresh_result), 16, offsetof(driftd_refresh_result, next_ms), 8},
      {"driftd_change", sizeof(driftd_change), 56, offsetof(driftd_change, new_value), 40},
      {"driftd_diff_args", sizeof(driftd_diff_args), 56, offsetof(driftd_diff_args, reserved), 52},
      {"driftd_verdict", sizeof(driftd_verdict), 32, offsetof(driftd_verdict, reason), 16},
      {"driftd_provider_table", sizeof(driftd_provider_table), 88, offsetof(driftd_provider_table, query), 80},
      {"driftd_offer", sizeof(driftd_offer), 32, offsetof(driftd_offer, host_version), 16},
      {"driftd_accept", sizeof(driftd_accept), 24, offsetof(driftd_accept, table), 16},
      {"driftd_watch_args", sizeof(driftd_watch_args), 24, offsetof(driftd_watch_args, cursor), 8},
      {"driftd_watch_table", sizeof(driftd_watch_table), 16, offsetof(driftd_watch_table, watch), 8},
  };
  for (const auto& layout : layouts) {
    EXPECT_GE(layout.size, layout.released_size) << layout.name;
    EXPECT_EQ(layout.last_field, layout.released_last_field) << layout.name;
  }
}

TEST(AbiLayout, CodesKeepTheirNumbers) {
  const int codes[] = {DRIFTD_OK,        DRIFTD_INVALID,   DRIFTD_DENIED,         DRIFTD_UNAUTHENTICATED,
                       DRIFTD_NOT_FOUND, DRIFTD_CONFLICT,  DRIFTD_THROTTLED,      DRIFTD_UNAVAILABLE,
                       DRIFTD_DEADLINE,  DRIFTD_CANCELLED, DRIFTD_CURSOR_EXPIRED, DRIFTD_UNSUPPORTED,
                       DRIFTD_BUDGET,    DRIFTD_CORRUPT,   DRIFTD_INTERNAL};
  int expected = 0;
  for (const int code : codes) EXPECT_EQ(code, expected++);
  EXPECT_EQ(DRIFTD_FINISH_SOON, -1);
}

}  // namespace
