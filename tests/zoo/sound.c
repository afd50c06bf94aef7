/* SPDX-License-Identifier: Apache-2.0 */
/* sound: the base provider as it is. twin: as sound, but with the id of another one. */
#if defined(ZOO_twin)
#undef ZOO_NAME
#define ZOO_NAME "sound"
#endif
#include "base.h"
