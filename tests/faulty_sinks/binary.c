/* SPDX-License-Identifier: Apache-2.0 */
/* These are wrong before the first call. textrel, exec_stack, rpath and no_relro differ in how they are linked, see
 * CMakeLists.
 */
#include "../faulty_providers/at_load.h"
#include "base.h"

#if defined(FAULTY_undefined_symbol)
extern void nobody_defines_this(void);
void faulty_close(driftd_instance self) {
  base_close(self);
  nobody_defines_this();
}

#elif defined(FAULTY_missing_symbol) /* its version script hides driftd_sink_v1 */
DRIFTD_EXPORT driftd_status driftd_sink_v9(const driftd_sink_host_table* host, const driftd_offer* offer,
                                           driftd_sink_accept* out);
driftd_status driftd_sink_v9(const driftd_sink_host_table* host, const driftd_offer* offer, driftd_sink_accept* out) {
  return base_entry(host, offer, out);
}

#elif defined(FAULTY_two_symbols) /* its version script exports another one */
DRIFTD_EXPORT int second_symbol(void);
int second_symbol(void) { return 2; }
#endif
