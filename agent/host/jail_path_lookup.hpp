// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/task.hpp"
#include "host/jail_paths.hpp"

namespace driftd::host {

/// Finds the paths that the settings of backends open, for all backends. A file system that hangs keeps a thread in the
/// kernel, and nothing can end that thread. So each lookup runs on a short-lived thread of its own, never on a pool.
/// While the lookup of a backend hangs, no further one is started for it. The maximum is 512 threads in all. Core
/// thread.
class JailPathLookup {
 public:
  struct Request {
    std::string backend, schema, settings;   ///< a name; two JSON texts as for jail_paths()
    std::vector<std::filesystem::path> own;  ///< the agent's files, which no plugin may read
  };
  static constexpr std::chrono::milliseconds kPatience{1'000};  ///< maximum time that find_paths() waits

  /// Returns nullopt if there is no answer within kPatience, or if the previous lookup of this backend still hangs. The
  /// log has one line when a lookup begins to hang and one when it ends.
  static Task<std::optional<JailPaths>> find_paths(std::shared_ptr<JailPathLookup> self, asio::any_io_executor core,
                                                   Request request);

  /// Runs on the thread of the lookup, possibly after this object is gone. Tests replace it before the first lookup.
  std::function<JailPaths(const Request&)> find = [](const Request& request) {
    return jail_paths(request.schema, request.settings, request.own);
  };

 private:
  struct Answer;
  /// Returns true if the last lookup of the backend has not answered yet.
  bool hangs(const std::string& backend);

  std::shared_ptr<int> running_ = std::make_shared<int>();  ///< its use count is the number of running threads + 1
  std::map<std::string, std::shared_ptr<Answer>> hanging_;  ///< by backend
};

}  // namespace driftd::host
