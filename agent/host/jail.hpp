// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include "base/result.hpp"

namespace driftd::host {

/// What a worker gives up before it opens a .so, whose constructors run in dlopen: core dumps and tracing, new
/// privileges, every descriptor but 0–2 and `keep` (which becomes CLOEXEC), the environment, the working folder. The
/// worker dies with `parent`. `denied` when the system refuses one of them. Main thread, before any other.
Status enter_jail(int keep, pid_t parent);

}  // namespace driftd::host
