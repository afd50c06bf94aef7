// SPDX-License-Identifier: Apache-2.0
// Attempts to leave a worker's jail. The same code runs in a provider inside the jail, where each must be blocked, and
// in a plain process outside, where each must get through: a test that cannot fail proves nothing.
#pragma once

#include <sys/types.h>
#include <cerrno>
#include <string>
#include <vector>

namespace driftd::escapes {

/// What there is to reach. Two processes of the same user, and the files of an agent.
struct Targets {
  pid_t agent = 0, sibling = 0;
  std::string data_dir;       ///< with driftd.db, installation.key
  std::string plugin_folder;  ///< with own.so
  std::string outside;        ///< a folder that is nobody's: with victim (a file), inner (a folder)
  std::string agent_socket;   ///< a Unix stream socket that listens
  std::string datagram_socket;
  std::string abstract_name;  ///< of an abstract stream socket that listens, without the leading NUL
  std::string own_library;    ///< the .so that runs, or a copy of it
};

struct Attempt {
  const char* name;
  /// 0: it got through; otherwise the errno that stopped it.
  int (*run)(const Targets&);
  /// Only the superuser gets through outside, or only a kernel with that feature.
  bool root = false, feature = false;
};

std::vector<Attempt> attempts();

std::vector<Attempt> program_attempts();
std::vector<Attempt> process_attempts();
std::vector<Attempt> file_attempts();
std::vector<Attempt> change_attempts();
std::vector<Attempt> socket_attempts();
std::vector<Attempt> kernel_attempts();

/// The result of a system call as an attempt answers it.
inline int outcome(long result) { return result < 0 ? errno : 0; }
/// The same where an answer other than "you may not" shows that the kernel looked at it.
inline int reached(long result, int proof) { return result < 0 && errno != proof ? errno : 0; }

/// Opens and closes; a file that O_CREAT makes is its user's alone.
int try_open(const std::string& path, int flags);

/// The kernel or the jail said no, as opposed to: there is no such thing.
bool is_blocked(int error);

Targets parse_targets(const std::string& json);
std::string render_targets(const Targets& targets);

}  // namespace driftd::escapes
