// SPDX-License-Identifier: Apache-2.0
// An exception that leaves a function of a sink: of a probe that is cancelled.
#include <stdexcept>

#include "base.h"

driftd_status faulty_probe(driftd_instance self, driftd_call call, driftd_health_fn push, void* user) {
  if (base_host.cancelled(call) != 0) throw std::runtime_error("nobody caught this");
  return base_probe(self, call, push, user);
}
