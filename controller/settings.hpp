// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <tl/expected.hpp>

#include "controller/key.hpp"

namespace driftd::controller {

using Status = tl::expected<void, std::string>;  ///< the text says what, where, expected, found, and what to do

enum class LogLevel { info, warning, error };
using Log = std::function<void(LogLevel, const std::string&)>;  ///< any thread; must not throw

/// The first five are those of the resource-watcher RFC, with its names and defaults.
struct Settings {
  Duration reconciliation_timeout = std::chrono::minutes(10);
  int max_retry_attempts = 5;                              ///< attempts in a row, the first included
  Duration scheduler_interval = std::chrono::seconds(30);  ///< between two resyncs
  Duration cleanup_interval = std::chrono::seconds(300);
  Duration watch_interval = std::chrono::seconds(5);      ///< between two lists of a source that is polled
  int workers = 1;                                        ///< reconciles of one controller at the same time
  Duration retry_first = std::chrono::milliseconds(500);  ///< doubles with each attempt, up to `retry_max`
  Duration retry_max = std::chrono::minutes(1);
  int retry_rate = 10;                                  ///< retries in a second, over all keys of a controller
  int retry_burst = 100;                                ///< retries at once after a quiet time
  Duration resync_pace = std::chrono::milliseconds(5);  ///< between two keys of a resync
  bool reconcile_on_status = false;                     ///< a change in status alone is reconciled, too
};

/// Names the first setting that cannot work: what was expected, and what was found.
Status check(const Settings& settings);

/// `10 min`, `30 s`, `250 ms`; in the largest unit that needs no fraction.
std::string render(Duration time);

}  // namespace driftd::controller
