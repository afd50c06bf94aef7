/* SPDX-License-Identifier: Apache-2.0 */
/* Everything of the ABI in one library, reached through exported variables: what abidw reads is what crosses. A test
 * (tests/contract/abi) demands that each struct and each number of the headers is here. */
#include "driftd/ext/apply.h"
#include "driftd/ext/discover.h"
#include "driftd/ext/upgrade.h"
#include "driftd/ext/watch.h"

#define DRIFTD_PROBE(type) DRIFTD_EXPORT type probe_##type

DRIFTD_PROBE(driftd_str);
DRIFTD_PROBE(driftd_call);
DRIFTD_PROBE(driftd_instance);
DRIFTD_PROBE(driftd_status);
DRIFTD_PROBE(driftd_kv);
DRIFTD_PROBE(driftd_identity);
DRIFTD_PROBE(driftd_unread);
DRIFTD_PROBE(driftd_record);
DRIFTD_PROBE(driftd_mark);
DRIFTD_PROBE(driftd_diagnostic);
DRIFTD_PROBE(driftd_health);
DRIFTD_PROBE(driftd_use_fn);
DRIFTD_PROBE(driftd_push_fn);
DRIFTD_PROBE(driftd_host_table);
DRIFTD_PROBE(driftd_open_args);
DRIFTD_PROBE(driftd_refresh_args);
DRIFTD_PROBE(driftd_refresh_result);
DRIFTD_PROBE(driftd_change);
DRIFTD_PROBE(driftd_diff_args);
DRIFTD_PROBE(driftd_verdict);
DRIFTD_PROBE(driftd_verdict_fn);
DRIFTD_PROBE(driftd_health_fn);
DRIFTD_PROBE(driftd_provider_table);
DRIFTD_PROBE(driftd_offer);
DRIFTD_PROBE(driftd_accept);
DRIFTD_PROBE(driftd_watch_args);
DRIFTD_PROBE(driftd_watch_table);
DRIFTD_PROBE(driftd_discovered);
DRIFTD_PROBE(driftd_discovered_fn);
DRIFTD_PROBE(driftd_discover_args);
DRIFTD_PROBE(driftd_discover_result);
DRIFTD_PROBE(driftd_discover_table);
DRIFTD_PROBE(driftd_upgrade_args);
DRIFTD_PROBE(driftd_upgrade_table);
DRIFTD_PROBE(driftd_apply_args);
DRIFTD_PROBE(driftd_applied);
DRIFTD_PROBE(driftd_applied_fn);
DRIFTD_PROBE(driftd_apply_table);

#define DRIFTD_NUMBER(name) probe_##name = (int)name
enum driftd_probe_numbers {
  DRIFTD_NUMBER(DRIFTD_ABI_MAJOR),
  DRIFTD_NUMBER(DRIFTD_OK),
  DRIFTD_NUMBER(DRIFTD_INVALID),
  DRIFTD_NUMBER(DRIFTD_DENIED),
  DRIFTD_NUMBER(DRIFTD_UNAUTHENTICATED),
  DRIFTD_NUMBER(DRIFTD_NOT_FOUND),
  DRIFTD_NUMBER(DRIFTD_CONFLICT),
  DRIFTD_NUMBER(DRIFTD_THROTTLED),
  DRIFTD_NUMBER(DRIFTD_UNAVAILABLE),
  DRIFTD_NUMBER(DRIFTD_DEADLINE),
  DRIFTD_NUMBER(DRIFTD_CANCELLED),
  DRIFTD_NUMBER(DRIFTD_CURSOR_EXPIRED),
  DRIFTD_NUMBER(DRIFTD_UNSUPPORTED),
  DRIFTD_NUMBER(DRIFTD_BUDGET),
  DRIFTD_NUMBER(DRIFTD_CORRUPT),
  DRIFTD_NUMBER(DRIFTD_INTERNAL),
  DRIFTD_NUMBER(DRIFTD_FINISH_SOON),
  DRIFTD_NUMBER(DRIFTD_MARK_CHECKPOINT),
  DRIFTD_NUMBER(DRIFTD_MARK_COMPLETE),
  DRIFTD_NUMBER(DRIFTD_MARK_BOOKMARK),
  DRIFTD_NUMBER(DRIFTD_HEALTH_UNKNOWN),
  DRIFTD_NUMBER(DRIFTD_HEALTH_UP),
  DRIFTD_NUMBER(DRIFTD_HEALTH_DEGRADED),
  DRIFTD_NUMBER(DRIFTD_HEALTH_DOWN),
  DRIFTD_NUMBER(DRIFTD_LOG_DEBUG),
  DRIFTD_NUMBER(DRIFTD_LOG_INFO),
  DRIFTD_NUMBER(DRIFTD_LOG_WARN),
  DRIFTD_NUMBER(DRIFTD_LOG_ERROR),
  DRIFTD_NUMBER(DRIFTD_REFRESH_FULL),
  DRIFTD_NUMBER(DRIFTD_VERDICT_EQUIVALENT),
  DRIFTD_NUMBER(DRIFTD_VERDICT_UNSETTLED),
  DRIFTD_NUMBER(DRIFTD_EXT_WATCH_REVISION),
  DRIFTD_NUMBER(DRIFTD_EXT_DISCOVER_REVISION),
  DRIFTD_NUMBER(DRIFTD_BACKEND_EXTERNAL),
  DRIFTD_NUMBER(DRIFTD_EXT_UPGRADE_REVISION),
  DRIFTD_NUMBER(DRIFTD_EXT_APPLY_REVISION),
  DRIFTD_NUMBER(DRIFTD_APPLY_DRY_RUN),
  DRIFTD_NUMBER(DRIFTD_APPLY_SUCCESS),
  DRIFTD_NUMBER(DRIFTD_APPLY_FAILED),
  DRIFTD_NUMBER(DRIFTD_APPLY_REQUEUE),
  DRIFTD_NUMBER(DRIFTD_APPLY_REQUEUE_AFTER)
};
DRIFTD_EXPORT enum driftd_probe_numbers probe_numbers;

driftd_status driftd_provider_v1(const driftd_host_table* host, const driftd_offer* offer, driftd_accept* out) {
  (void)host;
  (void)offer;
  (void)out;
  return DRIFTD_UNSUPPORTED;
}
