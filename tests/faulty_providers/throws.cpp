// SPDX-License-Identifier: Apache-2.0
// An exception that leaves a provider's function.
#include <stdexcept>

#include "base.h"

driftd_status faulty_refresh(driftd_instance, driftd_call, const driftd_refresh_args*, driftd_refresh_result*) {
  throw std::runtime_error("nobody caught this");
}
