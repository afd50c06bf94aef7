// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>

namespace driftd::op {

/// Serves /metrics, /healthz and /readyz over plain HTTP, on threads of its own.
class StatusServer {
 public:
  struct Answers {
    std::function<std::string()> metrics;  ///< Prometheus text
    std::function<std::string()> unready;  ///< why it is not ready; empty: it is
  };
  /// Throws std::runtime_error if `listen` (`HOST:PORT`; port 0: any free one, which the log names) cannot be used.
  StatusServer(const std::string& listen, Answers answers);
  ~StatusServer();

 private:
  class Server;
  std::unique_ptr<Server> server_;
};

}  // namespace driftd::op
