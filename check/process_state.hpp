// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <chrono>
#include <csignal>
#include <functional>
#include <string>
#include <vector>

namespace driftd::check {

/// State of the whole process and of the calling thread.
struct ProcessState {
  std::string folder, locale;
  mode_t umask = 0;
  std::vector<std::string> environment;  ///< sorted
  std::vector<void*> handlers;           ///< by signal number
  sigset_t mask{};                       ///< of the calling thread

  static ProcessState capture();
  /// Describes the first difference: `working folder: expected /a, found /b`. Empty if there is none. Values of
  /// environment variables are not shown.
  std::string difference(const ProcessState& later) const;
  std::string signal_difference(const ProcessState& later) const;  ///< compares handlers and mask only
};

/// The resources that this process uses now.
struct Footprint {
  long heap = 0;  ///< bytes allocated by malloc and not freed
  long rss = 0;   ///< bytes; 0 under a sanitizer
  long fds = 0, threads = 0;
  static Footprint capture();
};

/// How long expect_flat may take.
struct Pace {
  std::chrono::nanoseconds time_limit = std::chrono::seconds(120);
  std::function<std::chrono::nanoseconds()> now = [] { return std::chrono::steady_clock::now().time_since_epoch(); };
};

/// Runs `work` `warmup` times, then in rounds of `times` calls. Throws RuleBroken if every round leaves more heap
/// bytes, resident memory, descriptors or threads behind. There are three rounds, and more while the growth slows down:
/// what reaches a plateau passes. If the first call is slow, fewer calls are made. Throws CheckNotMade if the time is
/// too short for a verdict.
void expect_flat(const std::string& what, int warmup, int times, const std::function<void()>& work,
                 const Pace& pace = {});

/// Captures what is printed on descriptor 1 (and 2) while this object lives, and tells whether descriptors 0 to 2 were
/// closed or redirected.
class Stdio {
 public:
  explicit Stdio(bool also_stderr);
  ~Stdio();  ///< restores the descriptors
  Stdio(const Stdio&) = delete;
  Stdio& operator=(const Stdio&) = delete;
  std::string printed() const;     ///< on stdout, or on stdout and stderr
  std::string redirected() const;  ///< `descriptor 1 is closed`; empty if none was changed

 private:
  struct Place {
    dev_t device = 0;
    ino_t inode = 0;
  };
  const bool also_stderr_;
  int memory_ = -1, saved_[3] = {-1, -1, -1};
  Place places_[3];
};

}  // namespace driftd::check
