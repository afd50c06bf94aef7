/* SPDX-License-Identifier: Apache-2.0 */
/* The layout of ABI 1.0 on LP64, checked by both compilers: a line here is never changed, only added to. */
#ifndef DRIFTD_ABI_LAYOUT_H
#define DRIFTD_ABI_LAYOUT_H

#include <stddef.h>

#include "driftd/ext/watch.h"
#include "driftd/provider.h"

#ifdef __cplusplus
#define DRIFTD_HOLDS(condition) static_assert(condition, #condition)
#else
#define DRIFTD_HOLDS(condition) _Static_assert(condition, #condition)
#endif
#define DRIFTD_SIZE(type, bytes) DRIFTD_HOLDS(sizeof(type) == (bytes))
#define DRIFTD_AT(type, member, offset) DRIFTD_HOLDS(offsetof(type, member) == (offset))

DRIFTD_SIZE(driftd_str, 16);
DRIFTD_AT(driftd_str, data, 0);
DRIFTD_AT(driftd_str, len, 8);
DRIFTD_SIZE(driftd_kv, 40);
DRIFTD_AT(driftd_kv, size, 0);
DRIFTD_AT(driftd_kv, reserved, 4);
DRIFTD_AT(driftd_kv, key, 8);
DRIFTD_AT(driftd_kv, value, 24);
DRIFTD_SIZE(driftd_identity, 40);
DRIFTD_AT(driftd_identity, size, 0);
DRIFTD_AT(driftd_identity, reserved, 4);
DRIFTD_AT(driftd_identity, kind, 8);
DRIFTD_AT(driftd_identity, id, 24);
DRIFTD_SIZE(driftd_unread, 40);
DRIFTD_AT(driftd_unread, size, 0);
DRIFTD_AT(driftd_unread, code, 4);
DRIFTD_AT(driftd_unread, path, 8);
DRIFTD_AT(driftd_unread, reason, 24);
DRIFTD_SIZE(driftd_record, 200);
DRIFTD_AT(driftd_record, size, 0);
DRIFTD_AT(driftd_record, schema_revision, 4);
DRIFTD_AT(driftd_record, kind, 8);
DRIFTD_AT(driftd_record, id, 24);
DRIFTD_AT(driftd_record, backend, 40);
DRIFTD_AT(driftd_record, body, 56);
DRIFTD_AT(driftd_record, status, 72);
DRIFTD_AT(driftd_record, version, 88);
DRIFTD_AT(driftd_record, external_name, 104);
DRIFTD_AT(driftd_record, origin, 120);
DRIFTD_AT(driftd_record, unread, 136);
DRIFTD_AT(driftd_record, unread_count, 144);
DRIFTD_AT(driftd_record, unread_stride, 148);
DRIFTD_AT(driftd_record, metadata, 152);
DRIFTD_AT(driftd_record, metadata_count, 160);
DRIFTD_AT(driftd_record, metadata_stride, 164);
DRIFTD_AT(driftd_record, sensitive, 168);
DRIFTD_AT(driftd_record, sensitive_count, 176);
DRIFTD_AT(driftd_record, observed_ns, 184);
DRIFTD_AT(driftd_record, tombstone, 192);
DRIFTD_AT(driftd_record, reserved, 196);
DRIFTD_SIZE(driftd_mark, 48);
DRIFTD_AT(driftd_mark, size, 0);
DRIFTD_AT(driftd_mark, type, 4);
DRIFTD_AT(driftd_mark, kind, 8);
DRIFTD_AT(driftd_mark, cursor, 24);
DRIFTD_AT(driftd_mark, count, 40);
DRIFTD_SIZE(driftd_diagnostic, 96);
DRIFTD_AT(driftd_diagnostic, size, 0);
DRIFTD_AT(driftd_diagnostic, code, 4);
DRIFTD_AT(driftd_diagnostic, kind, 8);
DRIFTD_AT(driftd_diagnostic, id, 24);
DRIFTD_AT(driftd_diagnostic, path, 40);
DRIFTD_AT(driftd_diagnostic, text, 56);
DRIFTD_AT(driftd_diagnostic, right, 72);
DRIFTD_AT(driftd_diagnostic, retry_after_ms, 88);
DRIFTD_SIZE(driftd_health, 80);
DRIFTD_AT(driftd_health, size, 0);
DRIFTD_AT(driftd_health, state, 4);
DRIFTD_AT(driftd_health, latency_us, 8);
DRIFTD_AT(driftd_health, reason, 16);
DRIFTD_AT(driftd_health, role, 32);
DRIFTD_AT(driftd_health, system_identity, 48);
DRIFTD_AT(driftd_health, server_version, 64);
DRIFTD_SIZE(driftd_host_table, 104);
DRIFTD_AT(driftd_host_table, size, 0);
DRIFTD_AT(driftd_host_table, minor, 4);
DRIFTD_AT(driftd_host_table, now, 8);
DRIFTD_AT(driftd_host_table, log, 16);
DRIFTD_AT(driftd_host_table, metric, 24);
DRIFTD_AT(driftd_host_table, cancelled, 32);
DRIFTD_AT(driftd_host_table, deadline, 40);
DRIFTD_AT(driftd_host_table, cancel_fd, 48);
DRIFTD_AT(driftd_host_table, emit, 56);
DRIFTD_AT(driftd_host_table, mark, 64);
DRIFTD_AT(driftd_host_table, diag, 72);
DRIFTD_AT(driftd_host_table, permit, 80);
DRIFTD_AT(driftd_host_table, secret, 88);
DRIFTD_AT(driftd_host_table, query, 96);
DRIFTD_SIZE(driftd_open_args, 40);
DRIFTD_AT(driftd_open_args, size, 0);
DRIFTD_AT(driftd_open_args, reserved, 4);
DRIFTD_AT(driftd_open_args, backend, 8);
DRIFTD_AT(driftd_open_args, settings, 24);
DRIFTD_SIZE(driftd_refresh_args, 40);
DRIFTD_AT(driftd_refresh_args, size, 0);
DRIFTD_AT(driftd_refresh_args, flags, 4);
DRIFTD_AT(driftd_refresh_args, cursor, 8);
DRIFTD_AT(driftd_refresh_args, kinds, 24);
DRIFTD_AT(driftd_refresh_args, kind_count, 32);
DRIFTD_AT(driftd_refresh_args, reserved, 36);
DRIFTD_SIZE(driftd_refresh_result, 16);
DRIFTD_AT(driftd_refresh_result, size, 0);
DRIFTD_AT(driftd_refresh_result, unchanged, 4);
DRIFTD_AT(driftd_refresh_result, next_ms, 8);
DRIFTD_SIZE(driftd_change, 56);
DRIFTD_AT(driftd_change, size, 0);
DRIFTD_AT(driftd_change, index, 4);
DRIFTD_AT(driftd_change, path, 8);
DRIFTD_AT(driftd_change, old_value, 24);
DRIFTD_AT(driftd_change, new_value, 40);
DRIFTD_SIZE(driftd_diff_args, 56);
DRIFTD_AT(driftd_diff_args, size, 0);
DRIFTD_AT(driftd_diff_args, change_stride, 4);
DRIFTD_AT(driftd_diff_args, kind, 8);
DRIFTD_AT(driftd_diff_args, id, 24);
DRIFTD_AT(driftd_diff_args, changes, 40);
DRIFTD_AT(driftd_diff_args, change_count, 48);
DRIFTD_AT(driftd_diff_args, reserved, 52);
DRIFTD_SIZE(driftd_verdict, 32);
DRIFTD_AT(driftd_verdict, size, 0);
DRIFTD_AT(driftd_verdict, index, 4);
DRIFTD_AT(driftd_verdict, verdict, 8);
DRIFTD_AT(driftd_verdict, reserved, 12);
DRIFTD_AT(driftd_verdict, reason, 16);
DRIFTD_SIZE(driftd_provider_table, 88);
DRIFTD_AT(driftd_provider_table, size, 0);
DRIFTD_AT(driftd_provider_table, reserved, 4);
DRIFTD_AT(driftd_provider_table, describe, 8);
DRIFTD_AT(driftd_provider_table, schema, 16);
DRIFTD_AT(driftd_provider_table, open, 24);
DRIFTD_AT(driftd_provider_table, read, 32);
DRIFTD_AT(driftd_provider_table, refresh, 40);
DRIFTD_AT(driftd_provider_table, diff, 48);
DRIFTD_AT(driftd_provider_table, health, 56);
DRIFTD_AT(driftd_provider_table, wake, 64);
DRIFTD_AT(driftd_provider_table, close, 72);
DRIFTD_AT(driftd_provider_table, query, 80);
DRIFTD_SIZE(driftd_offer, 32);
DRIFTD_AT(driftd_offer, size, 0);
DRIFTD_AT(driftd_offer, minor_min, 4);
DRIFTD_AT(driftd_offer, minor_max, 8);
DRIFTD_AT(driftd_offer, in_process, 12);
DRIFTD_AT(driftd_offer, host_version, 16);
DRIFTD_SIZE(driftd_accept, 24);
DRIFTD_AT(driftd_accept, size, 0);
DRIFTD_AT(driftd_accept, minor_built, 4);
DRIFTD_AT(driftd_accept, minor_needed, 8);
DRIFTD_AT(driftd_accept, reserved, 12);
DRIFTD_AT(driftd_accept, table, 16);
DRIFTD_SIZE(driftd_watch_args, 24);
DRIFTD_AT(driftd_watch_args, size, 0);
DRIFTD_AT(driftd_watch_args, reserved, 4);
DRIFTD_AT(driftd_watch_args, cursor, 8);
DRIFTD_SIZE(driftd_watch_table, 16);
DRIFTD_AT(driftd_watch_table, size, 0);
DRIFTD_AT(driftd_watch_table, reserved, 4);
DRIFTD_AT(driftd_watch_table, watch, 8);

#endif /* DRIFTD_ABI_LAYOUT_H */
