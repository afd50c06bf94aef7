// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/task.hpp"
#include "grpc/change_log_settings.hpp"

namespace driftd::rpc {

/// Where the lines of a change log go.
class ChangeLogOutput {
 public:
  virtual ~ChangeLogOutput() = default;
  /// Writes the lines, given without newlines, and returns once they are where they are kept. After a failure any of
  /// them may be there. Called by one thread at a time.
  virtual Status write(const std::vector<std::string>& lines) = 0;
};

/// Returns `invalid` or `denied` if the settings cannot be served; the message names the option.
Status check_change_log_server(const ChangeLogServerSettings& settings);

/// The service driftd.changelog.v1.ChangeLog over an output: what the sidecar is. Its calls run on threads of gRPC, its
/// own functions on `core`.
class ChangeLogServer {
 public:
  /// `output` must outlive it.
  static Result<std::unique_ptr<ChangeLogServer>> open(ChangeLogServerSettings settings, ChangeLogOutput& output,
                                                       asio::any_io_executor core);
  ~ChangeLogServer();
  ChangeLogServer(const ChangeLogServer&) = delete;
  ChangeLogServer& operator=(const ChangeLogServer&) = delete;

  /// Listens. Fails with `conflict` if somebody does already, or if the path is not a socket.
  Status start();
  /// Ends the calls in progress, within two seconds, and removes the socket. Blocks. Idempotent.
  void stop();
  int port() const;  ///< of `address`; 0 before start()

 private:
  struct State;
  explicit ChangeLogServer(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;  ///< also of the loop that accepts connections
};

}  // namespace driftd::rpc
