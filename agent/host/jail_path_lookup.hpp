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

/// Looks at what the settings of backends open, for all of them. A file system that hangs holds a thread in the kernel
/// for as long as it hangs, and nothing can take it back: so each find_paths has a short-lived thread of its own and
/// none of a pool. A backend whose find_paths hangs is not looked at again until it ended; all together have at most
/// 512 threads. Core thread.
class JailPathLookup {
 public:
  struct Request {
    std::string backend, schema, settings;
    std::vector<std::filesystem::path> own;
  };
  static constexpr std::chrono::milliseconds kPatience{1'000};

  /// Nothing: no answer within kPatience, or none yet to the find_paths before. That is told once, and so is its end.
  static Task<std::optional<JailPaths>> find_paths(std::shared_ptr<JailPathLookup> self, asio::any_io_executor core,
                                                   Request request);

  /// Runs on the find_paths's own thread, also after this object is gone. For tests; before the first find_paths.
  std::function<JailPaths(const Request&)> find = [](const Request& request) {
    return jail_paths(request.schema, request.settings, request.own);
  };

 private:
  struct Answer;
  bool hangs(const std::string& backend);

  std::shared_ptr<int> running_ = std::make_shared<int>();  ///< one more owner for each thread
  std::map<std::string, std::shared_ptr<Answer>> hanging_;  ///< by backend
};

}  // namespace driftd::host
