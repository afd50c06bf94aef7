// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace driftd::worker {

/// First half, before anything is known of the plugin. Given up: capabilities, core dumps and tracing, new privileges,
/// every descriptor but 0–2, `keep` and the one after it (which become CLOEXEC), the environment, the working folder.
/// The process dies with `parent`, and before all others where memory runs out. `denied` when the system refuses one of
/// them. Main thread, before any other.
Status strip_process(int keep, pid_t parent);

/// What a plugin may reach beside what every library needs.
struct JailSpec {
  /// files and folders, readable with all below; without links; missing ones are passed over
  std::vector<std::string> read_paths;
  bool unix_sockets = false;  ///< AF_UNIX sockets may be made
  bool kills = false;         ///< a denied system call ends the process (SIGSYS) instead of failing (EPERM)
};

/// Second half, before the .so is opened (its constructors run in dlopen): landlock, then seccomp, for ever. Answers
/// what holds, `landlock 7, seccomp` or `no landlock (kernel), seccomp`; `denied` when what the kernel has cannot be
/// entered, or when a second thread is there: landlock would not hold it. The only thread. Allocates.
Result<std::string> lock_process(const JailSpec& spec);

/// What lock_process would answer on this kernel. [any thread]
std::string describe_kernel_jail();
/// `unsupported` in words unless workers get landlock and seccomp here. [any thread]
Status require_full_jail();

namespace jail {

/// 0: the kernel has none, or it is switched off.
int landlock_version();
/// Why there is none: `kernel`, or in words what forbids or hides it. Empty: there is.
std::string missing_landlock_reason();
bool has_seccomp();
Status enter_landlock(int version, const JailSpec& spec);
Status enter_seccomp(const JailSpec& spec);
std::string render(int landlock, bool seccomp, const std::string& lack = "kernel");

}  // namespace jail
}  // namespace driftd::worker
