// SPDX-License-Identifier: Apache-2.0
// Attempts to leave a worker's jail. The same code runs in a provider inside the jail, where each attempt must be
// blocked, and in a plain process outside, where each must succeed. Otherwise the test could not fail.
#pragma once

#include <sys/types.h>
#include <cerrno>
#include <string>
#include <vector>

namespace driftd::escapes {

/// The targets of the attempts: two processes of the same user, and the files of an agent.
struct Targets {
  pid_t agent = 0, sibling = 0;
  std::string data_dir;       ///< contains driftd.db and installation.key
  std::string plugin_folder;  ///< contains own.so
  std::string outside;        ///< a folder beside them; contains victim (a file) and inner (a folder)
  std::string agent_socket;   ///< a listening Unix stream socket
  std::string datagram_socket;
  std::string abstract_name;  ///< name of a listening abstract stream socket, without the leading NUL
  std::string own_library;    ///< the running .so, or a copy of it
};

/// One way to leave the jail. It changes nothing that matters, even if it succeeds.
struct Attempt {
  const char* name;
  /// Returns 0 if the attempt succeeded, otherwise the errno that stopped it.
  int (*run)(const Targets&);
  /// `root`: outside of a jail only the superuser succeeds. `feature`: the kernel or the container may lack what it
  /// needs.
  bool root = false, feature = false;
};

std::vector<Attempt> attempts();

std::vector<Attempt> program_attempts();
std::vector<Attempt> process_attempts();
std::vector<Attempt> file_attempts();
std::vector<Attempt> change_attempts();
std::vector<Attempt> socket_attempts();
std::vector<Attempt> kernel_attempts();

/// Returns the result of an attempt from the result of its system call.
inline int outcome(long result) { return result < 0 ? errno : 0; }
/// Likewise, but the errno `proof` counts as success, because it shows that the jail let the call reach the kernel.
inline int reached(long result, int proof) { return result < 0 && errno != proof ? errno : 0; }

/// Opens and closes a file. A file that O_CREAT makes gets the mode 0600.
int try_open(const std::string& path, int flags);

/// Returns true if the errno means "not permitted", not merely "does not exist".
bool is_blocked(int error);

Targets parse_targets(const std::string& json);
std::string render_targets(const Targets& targets);

}  // namespace driftd::escapes
