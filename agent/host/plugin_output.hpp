// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <set>
#include <string>

#include "base/rate_limiter.hpp"
#include "base/result.hpp"
#include "ipc/text.hpp"
#include "ipc/wire.hpp"

namespace driftd::host {

/// Takes the log lines and metrics of a backend's plugin from its worker: prints the lines without secrets, keeps the
/// last value of each metric, and notices floods. Owned by a Supervisor, whose workers share it. Core thread.
class PluginOutput {
 public:
  /// The scrubber must outlive this object.
  PluginOutput(std::string backend, const ipc::Scrubber& scrubber)
      : backend_(std::move(backend)),
        scrubber_(scrubber) {}

  /// Sets the names of the metrics that the plugin may send.
  void declare_metrics(std::set<std::string> names) { declared_ = std::move(names); }
  /// Takes one frame. Returns `invalid` if a worker of ours never sends it, a flood included; the message continues a
  /// sentence that begins with "the worker".
  Status take_log(const ipc::Frame& frame);
  Status take_metric(const ipc::Frame& frame);  ///< also `invalid` for a name that was not declared

  const std::map<std::string, double>& gauges() const { return gauges_; }  ///< last value by declared name

 private:
  const std::string backend_;
  const ipc::Scrubber& scrubber_;
  std::set<std::string> declared_;  ///< names of describe().metrics
  std::map<std::string, double> gauges_;
  RateLimiter log_rate_, log_flood_{std::chrono::milliseconds(2), 10'000},
      metric_flood_{std::chrono::milliseconds(1), 20'000};
  std::uint64_t lines_dropped_ = 0;  ///< since the last printed line
};

}  // namespace driftd::host
