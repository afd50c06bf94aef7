/* SPDX-License-Identifier: Apache-2.0 */
/* The layout of the sink ABI 1.0-rc on LP64, checked by both compilers. From 1.0 on, a line here is only added to. */
#ifndef DRIFTD_ABI_LAYOUT_SINK_H
#define DRIFTD_ABI_LAYOUT_SINK_H

#include "driftd/sink.h"
#include "layout.h"

DRIFTD_SIZE(driftd_event, 176);
DRIFTD_AT(driftd_event, size, 0);
DRIFTD_AT(driftd_event, flags, 4);
DRIFTD_AT(driftd_event, id, 8);
DRIFTD_AT(driftd_event, source, 24);
DRIFTD_AT(driftd_event, type, 40);
DRIFTD_AT(driftd_event, subject, 56);
DRIFTD_AT(driftd_event, topic, 72);
DRIFTD_AT(driftd_event, order_key, 88);
DRIFTD_AT(driftd_event, sequence, 104);
DRIFTD_AT(driftd_event, incarnation, 112);
DRIFTD_AT(driftd_event, time_ns, 120);
DRIFTD_AT(driftd_event, content_type, 128);
DRIFTD_AT(driftd_event, body, 144);
DRIFTD_AT(driftd_event, attributes, 160);
DRIFTD_AT(driftd_event, attribute_count, 168);
DRIFTD_AT(driftd_event, attribute_stride, 172);
DRIFTD_SIZE(driftd_batch, 24);
DRIFTD_AT(driftd_batch, size, 0);
DRIFTD_AT(driftd_batch, flags, 4);
DRIFTD_AT(driftd_batch, events, 8);
DRIFTD_AT(driftd_batch, event_count, 16);
DRIFTD_AT(driftd_batch, event_stride, 20);
DRIFTD_SIZE(driftd_settlement, 40);
DRIFTD_AT(driftd_settlement, size, 0);
DRIFTD_AT(driftd_settlement, index, 4);
DRIFTD_AT(driftd_settlement, outcome, 8);
DRIFTD_AT(driftd_settlement, reserved, 12);
DRIFTD_AT(driftd_settlement, retry_after_ms, 16);
DRIFTD_AT(driftd_settlement, detail, 24);
DRIFTD_SIZE(driftd_sink_host_table, 80);
DRIFTD_AT(driftd_sink_host_table, size, 0);
DRIFTD_AT(driftd_sink_host_table, minor, 4);
DRIFTD_AT(driftd_sink_host_table, now, 8);
DRIFTD_AT(driftd_sink_host_table, log, 16);
DRIFTD_AT(driftd_sink_host_table, cancelled, 24);
DRIFTD_AT(driftd_sink_host_table, deadline, 32);
DRIFTD_AT(driftd_sink_host_table, cancel_fd, 40);
DRIFTD_AT(driftd_sink_host_table, settle, 48);
DRIFTD_AT(driftd_sink_host_table, diag, 56);
DRIFTD_AT(driftd_sink_host_table, secret, 64);
DRIFTD_AT(driftd_sink_host_table, query, 72);
DRIFTD_SIZE(driftd_sink_open_args, 40);
DRIFTD_AT(driftd_sink_open_args, size, 0);
DRIFTD_AT(driftd_sink_open_args, reserved, 4);
DRIFTD_AT(driftd_sink_open_args, sink, 8);
DRIFTD_AT(driftd_sink_open_args, settings, 24);
DRIFTD_SIZE(driftd_sink_table, 80);
DRIFTD_AT(driftd_sink_table, size, 0);
DRIFTD_AT(driftd_sink_table, reserved, 4);
DRIFTD_AT(driftd_sink_table, describe, 8);
DRIFTD_AT(driftd_sink_table, schema, 16);
DRIFTD_AT(driftd_sink_table, open, 24);
DRIFTD_AT(driftd_sink_table, deliver, 32);
DRIFTD_AT(driftd_sink_table, probe, 40);
DRIFTD_AT(driftd_sink_table, flush, 48);
DRIFTD_AT(driftd_sink_table, wake, 56);
DRIFTD_AT(driftd_sink_table, close, 64);
DRIFTD_AT(driftd_sink_table, query, 72);
DRIFTD_SIZE(driftd_sink_accept, 40);
DRIFTD_AT(driftd_sink_accept, size, 0);
DRIFTD_AT(driftd_sink_accept, minor_built, 4);
DRIFTD_AT(driftd_sink_accept, minor_needed, 8);
DRIFTD_AT(driftd_sink_accept, reserved, 12);
DRIFTD_AT(driftd_sink_accept, table, 16);
DRIFTD_AT(driftd_sink_accept, refusal, 24);

DRIFTD_HOLDS(DRIFTD_SINK_ABI_MAJOR == 1);
DRIFTD_HOLDS(DRIFTD_EVENT_REPLAY == 1 && DRIFTD_EVENT_AGENT == 2);
DRIFTD_HOLDS(DRIFTD_OUTCOME_DELIVERED == 1 && DRIFTD_OUTCOME_RETRY_EVENT == 2 && DRIFTD_OUTCOME_RETRY_SINK == 3);
DRIFTD_HOLDS(DRIFTD_OUTCOME_REFUSED == 4 && DRIFTD_OUTCOME_PERMANENT == 5 && DRIFTD_OUTCOME_DISABLED == 6);

#endif /* DRIFTD_ABI_LAYOUT_SINK_H */
