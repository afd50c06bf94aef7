// SPDX-License-Identifier: Apache-2.0
// Attempts to start programs or processes, or to enter namespaces.
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "escapes.hpp"

namespace driftd::escapes {
namespace {

char kProgram[] = "/bin/true";
char* const kArguments[] = {kProgram, nullptr};
char* const kEnvironment[] = {nullptr};

int run_execve(const Targets&) { return outcome(::execve(kProgram, kArguments, kEnvironment)); }
int run_execveat(const Targets&) {
  return outcome(::syscall(SYS_execveat, AT_FDCWD, kProgram, kArguments, kEnvironment, 0));
}

int run_memfd(const Targets&) {
  const int memory = ::memfd_create("program", 0);
  if (memory < 0) return errno;
  const int from = ::open("/usr/bin/true", O_RDONLY);
  char buffer[65536];
  for (ssize_t got; (got = ::read(from, buffer, sizeof buffer)) > 0;) {
    if (::write(memory, buffer, static_cast<std::size_t>(got)) != got) return EIO;
  }
  ::close(from);
  const int result = outcome(::fexecve(memory, kArguments, kEnvironment));
  ::close(memory);
  return result;
}

int run_spawn(const Targets&) {
  pid_t child = 0;
  const int error = ::posix_spawn(&child, kProgram, nullptr, nullptr, kArguments, kEnvironment);
  if (error == 0) ::waitpid(child, nullptr, 0);
  return error;
}

int run_system(const Targets&) {
  const int status = std::system("exit 7");
  return WIFEXITED(status) && WEXITSTATUS(status) == 7 ? 0 : EPERM;
}

int run_popen(const Targets&) {
  FILE* const out = ::popen("echo out", "r");
  if (out == nullptr)
    return errno == ENOMEM ? EPERM : errno;  // glibc sets ENOMEM if it cannot make a process for any reason
  char word[8] = {};
  const bool answered = std::fgets(word, sizeof word, out) != nullptr;
  ::pclose(out);
  return answered ? 0 : EPERM;
}

int reap_child(pid_t child) {
  if (child == 0) ::_exit(0);
  if (child < 0) return errno;
  ::waitpid(child, nullptr, 0);
  return 0;
}

int run_fork(const Targets&) { return reap_child(static_cast<pid_t>(::syscall(SYS_fork))); }
int run_vfork(const Targets&) {
  const pid_t child = ::vfork();
  if (child == 0) ::_exit(0);
  return reap_child(child);
}
int run_clone(const Targets&) { return reap_child(static_cast<pid_t>(::syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0))); }
/// The kernel ignores the upper half of the register, so a filter must ignore it too.
int run_clone_high_bits(const Targets&) {
  return reap_child(static_cast<pid_t>(::syscall(SYS_clone, 0xdead00000000ul | SIGCHLD, 0, 0, 0, 0)));
}
int run_clone3(const Targets&) {
  clone_args arguments{};
  arguments.exit_signal = SIGCHLD;
  return reap_child(static_cast<pid_t>(::syscall(SYS_clone3, &arguments, sizeof arguments)));
}
int run_clone_user(const Targets&) {
  return reap_child(static_cast<pid_t>(::syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0)));
}
int run_unshare_user(const Targets&) { return outcome(::unshare(CLONE_NEWUSER)); }
int run_unshare_mounts(const Targets&) { return outcome(::unshare(CLONE_NEWNS)); }
int run_unshare_network(const Targets&) { return outcome(::unshare(CLONE_NEWNET)); }
int run_setns(const Targets&) {
  const int space = ::open("/proc/self/ns/uts", O_RDONLY | O_CLOEXEC);
  if (space < 0) return errno;
  const int result = outcome(::setns(space, 0));
  ::close(space);
  return result;
}
int run_setsid(const Targets&) { return outcome(::syscall(SYS_setsid)); }
/// Joins the agent's process group, and so gets the signals of that group.
int run_setpgid(const Targets& to) { return outcome(::setpgid(0, ::getpgid(to.agent))); }

}  // namespace

std::vector<Attempt> program_attempts() {
  return {{"execve", run_execve},
          {"execveat", run_execveat},
          {"fexecve of a memfd", run_memfd},
          {"posix_spawn", run_spawn},
          {"system", run_system},
          {"popen", run_popen},
          {"fork", run_fork},
          {"vfork", run_vfork},
          {"clone", run_clone},
          {"clone with high bits", run_clone_high_bits},
          {"clone3", run_clone3},
          {"clone into a user namespace", run_clone_user},
          {"unshare user", run_unshare_user},
          {"unshare mounts", run_unshare_mounts, true},
          {"unshare network", run_unshare_network, true},
          {"setns", run_setns, true},
          {"setsid", run_setsid},
          {"join the agent's group", run_setpgid}};
}

}  // namespace driftd::escapes
