// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "config/config.hpp"
#include "core/ports/change_log.hpp"

namespace driftd::app {

/// What `driftd changelog-sidecar` was asked for.
struct SidecarOptions {
  std::string listen;                ///< unix:///PATH, or HOST:PORT
  std::string output;                ///< a file; `-`: stdout
  std::string cert, key, client_ca;  ///< PEM files, for HOST:PORT
  std::int64_t max_entry_bytes = 4 << 20;
  std::int64_t rotate_bytes = 100ll << 20;  ///< of a file: at this size it becomes FILE.1
  int keep = 5;                             ///< rotated files
};

/// Receives change logs and writes them until SIGTERM or SIGINT. Returns an exit code (cli/exit_codes.hpp). Messages go
/// to stderr. Becomes driftd-grpc first where this program lacks gRPC.
int run_change_log_sidecar(const SidecarOptions& options);

/// Returns `invalid` or `denied` if the section `change_log` cannot be used. Success in a program without gRPC, which
/// becomes driftd-grpc for a change log.
Status check_change_log(const config::Config& config);
/// Opens where the entries go. `invalid` if that cannot be used, or in a program without gRPC.
Result<std::unique_ptr<core::ChangeLogReceiver>> make_change_log_receiver(const config::Config& config,
                                                                          asio::any_io_executor core);

}  // namespace driftd::app
