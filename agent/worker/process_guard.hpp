// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>
#include <array>
#include <csignal>
#include <mutex>
#include <string>
#include <vector>

namespace driftd::worker {

/// What belongs to the whole worker process and a plugin must leave alone: signal mask and handlers, locale, working
/// folder, umask, environment, descriptors 0 to 2, standard output, and few descriptors in all. Remembers it when made;
/// `changes` says in words what is different since, and puts it right. Any thread.
class ProcessGuard {
 public:
  /// Takes over standard output: what is printed there is found by the next `changes`.
  ProcessGuard();
  ~ProcessGuard();
  ProcessGuard(const ProcessGuard&) = delete;
  ProcessGuard& operator=(const ProcessGuard&) = delete;

  /// Of this thread's mask and the process's rest. `changed the locale from C to C.UTF-8`; empty: all is as it was.
  std::vector<std::string> changes();
  /// What runtimes do as they are loaded (Go takes over all signals) is how it is from now on.
  void accept_handlers();

 private:
  struct File {
    dev_t device = 0;
    ino_t inode = 0;
    int kept = -1;  ///< a copy beyond the plugin's reach
  };
  using Changes = std::vector<std::string>;
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
  int printed_ = -1;  ///< what reached standard output
  std::array<File, 3> files_;
  sigset_t mask_{};
  std::array<struct sigaction, 65> handlers_{};
  std::string locale_, folder_;
  mode_t umask_ = 0;
  std::size_t environment_ = 0;   ///< variables
  int reported_descriptors_ = 0;  ///< so many were open when that was last told
};

}  // namespace driftd::worker
