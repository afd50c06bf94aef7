// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace driftd::check {

/// From now on the first SIGINT, SIGTERM or SIGHUP ends the run in order, with a report of the checks made so far. A
/// second one ends the process. An ignored signal stays ignored.
void watch_interrupts();
void reset_interrupts();  ///< restores the defaults, for a child: these signals end it
/// Returns the name of the signal that arrived (`SIGTERM`). Null if there was none.
const char* interrupted();

}  // namespace driftd::check
