// SPDX-License-Identifier: Apache-2.0
// The adversarial host as sinks see it. All but `settle` are the functions that providers get.
#pragma once

#include <driftd/sink.h>

namespace driftd::check {

/// The table that sinks get: own_sink_host_table(), or the one that was set.
const driftd_sink_host_table* sink_host_table();
/// Gives sinks another table, whose functions call those of own_sink_host_table(). Must be called before the sink is
/// loaded.
void set_sink_host_table(const driftd_sink_host_table* table);
const driftd_sink_host_table* own_sink_host_table();

/// Returns `delivered`, `retry_sink` ...; for 0 `no verdict`.
const char* outcome_name(unsigned outcome);

}  // namespace driftd::check
