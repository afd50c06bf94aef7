// SPDX-License-Identifier: Apache-2.0
#include "layout.h"

int driftd_abi_layout_cpp() { return DRIFTD_ABI_MAJOR; }
