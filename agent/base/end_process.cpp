// SPDX-License-Identifier: Apache-2.0
#include "base/end_process.hpp"

#include <unistd.h>

namespace driftd {

void end_process(int status) { ::_exit(status); }

}  // namespace driftd
