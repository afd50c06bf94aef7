/* SPDX-License-Identifier: Apache-2.0 */
/* sound: the base provider as it is. twin: the same with the id of another provider. */
#if defined(FAULTY_twin)
#undef FAULTY_NAME
#define FAULTY_NAME "sound"
#endif
#include "base.h"
