// SPDX-License-Identifier: Apache-2.0
// Shared by the tests of programs: scripts in a folder of their own, and executors that run until a condition holds.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/thread_pool.hpp>
#include <filesystem>
#include <functional>
#include <optional>

#include "base/fatal.hpp"
#include "base/task.hpp"
#include "config/programs.hpp"
#include "support/patience.hpp"
#include "support/process.hpp"

namespace driftd::secrets {

class Loop {
 public:
  ~Loop() { io.join(); }
  /// Runs the core until `condition` holds. Returns false after `most`.
  bool until(const std::function<bool()>& condition, std::chrono::milliseconds most = std::chrono::seconds(20)) {
    const auto last = std::chrono::steady_clock::now() + most * test::kPatience;
    while (!condition()) {
      if (std::chrono::steady_clock::now() > last) return false;
      core.restart();
      core.run_one_for(std::chrono::milliseconds(10));
    }
    return true;
  }
  /// Runs a task to its end.
  template <class T>
  std::optional<T> wait(Task<T> task, std::chrono::milliseconds most = std::chrono::seconds(20)) {
    std::optional<T> out;
    asio::co_spawn(core, std::move(task), [&](std::exception_ptr thrown, T value) {
      fatal(thrown);
      out = std::move(value);
    });
    until([&] { return out.has_value(); }, most);
    return out;
  }

  asio::io_context core{1};
  asio::thread_pool io{2};
};

class Scripts {
 public:
  /// Writes an executable /bin/sh script; replaces an existing one atomically.
  std::string script(const std::string& name, const std::string& body) const {
    const std::string fresh = folder.write(name + ".new", "#!/bin/sh\n" + body + "\n");
    std::filesystem::permissions(fresh, std::filesystem::perms(0755));
    std::filesystem::rename(fresh, folder.file(name));
    return folder.file(name);
  }
  static config::ProgramUse use(std::vector<std::string> words) {
    config::ProgramUse out{"orders", "password", "driftd-secret-1", std::move(words), {}, {}};
    out.program.path = out.command.front();
    return out;
  }
  const test::TempDir folder;
};

}  // namespace driftd::secrets
