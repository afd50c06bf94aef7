/* SPDX-License-Identifier: Apache-2.0 */
/* The base sink as it is. */
#include "base.h"
