// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace driftd::check {

/// From now on SIGINT, SIGTERM and SIGHUP end the run in an orderly way, with a report of what is there; the second one
/// ends the process. One that is ignored stays so.
void watch_interrupts();
void reset_interrupts();  ///< in a child: they end it again
/// `SIGTERM`; null: there was none.
const char* interrupted();

}  // namespace driftd::check
