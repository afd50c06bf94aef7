// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <chrono>
#include <csignal>
#include <functional>
#include <string>
#include <vector>

namespace driftd::check {

/// What belongs to the whole process, or to the thread that asks.
struct ProcessState {
  std::string folder, locale;
  mode_t umask = 0;
  std::vector<std::string> environment;  ///< sorted
  std::vector<void*> handlers;           ///< by signal number
  sigset_t mask{};                       ///< of this thread

  static ProcessState capture();
  /// `working folder: expected /a, found /b`; empty: the same. Values of the environment are not shown.
  std::string difference(const ProcessState& later) const;
  std::string signal_difference(const ProcessState& later) const;  ///< handlers and mask only
};

/// What this process uses now.
struct Footprint {
  long heap = 0;  ///< bytes that malloc has handed out and not got back
  long rss = 0;   ///< bytes; 0 under a sanitizer
  long fds = 0, threads = 0;
  static Footprint capture();
};

/// How long expect_flat may capture.
struct Pace {
  std::chrono::nanoseconds time_limit = std::chrono::seconds(120);
  std::function<std::chrono::nanoseconds()> now = [] { return std::chrono::steady_clock::now().time_since_epoch(); };
};

/// RuleBroken when each round of `times` calls of `work`, after `warmup` calls, left more behind: bytes of the heap,
/// resident memory, descriptors or threads. Three rounds, more while the growth slows down; what reaches a plateau
/// passes. Slow work gets fewer calls, as the first one tells; CheckNotMade when the time is not enough for any
/// judgement.
void expect_flat(const std::string& what, int warmup, int times, const std::function<void()>& work,
                 const Pace& pace = {});

/// Where descriptors 0 to 2 lead, and what is printed on 1 (and 2) while this lives.
class Stdio {
 public:
  explicit Stdio(bool also_stderr);
  ~Stdio();  ///< gives back what was there
  Stdio(const Stdio&) = delete;
  Stdio& operator=(const Stdio&) = delete;
  std::string printed() const;     ///< on stdout, or both
  std::string redirected() const;  ///< `descriptor 1 is closed`; empty: all lead where they led

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
