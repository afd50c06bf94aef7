// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpc/grpc.h>

namespace driftd::rpc {

/// Keeps gRPC's library in use until the process ends. Whoever stops using it last waits in grpc_shutdown() for a
/// thread that may poll for another ten seconds (gRPC 1.51, the poller of TCP connections), after everything of ours
/// has stopped. Call it wherever a server or a channel is made.
inline void keep_library() {
  static const bool kept = [] {
    grpc_init();
    return true;
  }();
  (void)kept;
}

}  // namespace driftd::rpc
