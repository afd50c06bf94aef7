// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace driftd::worker {

/// First half of the jail, before anything of the plugin is known. Gives up capabilities, core dumps, tracing, new
/// privileges, the environment, the working folder, and every descriptor but 0–2, `keep` and the one after it (which
/// become CLOEXEC). The process dies with `parent`, and is the kernel's first choice when memory runs out. Returns
/// `denied` if the system refuses one of these. Main thread, before any other exists.
Status strip_process(int keep, pid_t parent);

/// What a plugin may use in addition to what every library needs.
struct JailSpec {
  /// files, and folders with everything below them, that are readable; no links; missing ones are skipped
  std::vector<std::string> read_paths;
  bool unix_sockets = false;  ///< AF_UNIX sockets may be made
  bool kills = false;         ///< a denied system call ends the process (SIGSYS) instead of failing (EPERM)
};

/// Second half of the jail: landlock, then seccomp, irrevocably. Must run before the .so is opened, because its
/// constructors run in dlopen. Returns what was entered, `landlock 7, seccomp` or `no landlock (kernel), seccomp`.
/// Returns `denied` if a mechanism of the kernel cannot be entered, or if a second thread exists, because landlock
/// would not hold it. Only on the only thread. Allocates memory.
Result<std::string> lock_process(const JailSpec& spec);

/// Returns what lock_process would return on this kernel. [any thread]
std::string describe_kernel_jail();
/// Returns `unsupported` with the reason unless workers get landlock and seccomp here. [any thread]
Status require_full_jail();

namespace jail {

/// Returns 0 if the kernel has no landlock or it is switched off.
int landlock_version();
/// Returns why there is no landlock: `kernel`, or a text that says what forbids or hides it. Empty if there is
/// landlock.
std::string missing_landlock_reason();
bool has_seccomp();  ///< filters, in this kernel
/// Return `denied` if the kernel refuses; seccomp also `internal` without memory. Once entered, this thread and all
/// that it starts stay inside.
Status enter_landlock(int version, const JailSpec& spec);
Status enter_seccomp(const JailSpec& spec);
std::string render(int landlock, bool seccomp, const std::string& lack = "kernel");

}  // namespace jail
}  // namespace driftd::worker
