// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>
#include <array>
#include <csignal>
#include <mutex>
#include <string>
#include <vector>

namespace driftd::worker {

/// Guards state that belongs to the whole worker process and that a plugin must not change: signal mask and handlers,
/// locale, working folder, umask, environment, descriptors 0 to 2, standard output, and the number of open descriptors.
/// The constructor remembers it; `changes` reports what has changed since, and restores it. Owned by the
/// ProviderHost of a worker process; in-process there is none, because that state is the agent's own. Any thread.
class ProcessGuard {
 public:
  /// Redirects standard output into a pipe; the next `changes` reports what was printed.
  ProcessGuard();
  ~ProcessGuard();
  ProcessGuard(const ProcessGuard&) = delete;
  ProcessGuard& operator=(const ProcessGuard&) = delete;

  /// Checks the mask of this thread and the rest of the process. Returns texts like `changed the locale from C to
  /// C.UTF-8`; empty if nothing has changed. The environment is only reported, because other threads may be reading it.
  std::vector<std::string> changes();
  /// Accepts the present signal handlers: language runtimes install theirs while they are loaded (Go takes all
  /// signals).
  void accept_handlers();

 private:
  struct File {
    dev_t device = 0;  ///< both zero if it was not open
    ino_t inode = 0;
    int kept = -1;  ///< a copy with a number that plugins do not close
  };
  using Changes = std::vector<std::string>;
  // Each appends a text to `out` if its part of the state has changed, and restores it where that is possible:
  void check_mask(Changes& out) const;
  void check_handlers(Changes& out) const;
  void check_locale(Changes& out) const;
  void check_folder(Changes& out) const;
  void check_umask(Changes& out) const;
  void check_environment(Changes& out);
  void check_files(Changes& out) const;
  void check_printed(Changes& out) const;
  void check_descriptors(Changes& out);

  std::mutex mutex_;
  int printed_ = -1;                             ///< read end of the pipe behind standard output
  std::array<File, 3> files_;                    ///< by descriptor
  sigset_t mask_{};                              ///< of the thread that made this object
  std::array<struct sigaction, 65> handlers_{};  ///< by signal
  std::string locale_, folder_;
  mode_t umask_ = 0;
  std::size_t environment_ = 0;   ///< number of variables
  int reported_descriptors_ = 0;  ///< number of open descriptors in the last report
};

}  // namespace driftd::worker
