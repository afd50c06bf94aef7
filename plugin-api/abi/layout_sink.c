/* SPDX-License-Identifier: Apache-2.0 */
#include "layout_sink.h"

int driftd_abi_layout_sink_c(void) { return DRIFTD_SINK_ABI_MAJOR; }
