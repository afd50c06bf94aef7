// SPDX-License-Identifier: Apache-2.0
// Attempts on the agent and on another worker: to read their memory, stop them or slow them down.
#include <dirent.h>
#include <fcntl.h>
#include <linux/kcmp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>
#include <csignal>
#include <cstring>

#include "escapes.hpp"

namespace driftd::escapes {
namespace {

constexpr int kHarmless = SIGURG;  // a process ignores it by default

/// Opens and reads a file, because some files may be opened and only reading is refused.
int try_read(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return errno;
  char byte = 0;
  const int result = outcome(::read(fd, &byte, 1));
  ::close(fd);
  return result;
}
int try_list(const std::string& path) {
  DIR* const folder = ::opendir(path.c_str());
  if (folder == nullptr) return errno;
  ::closedir(folder);
  return 0;
}
std::string proc_file(pid_t pid, const char* name) { return "/proc/" + std::to_string(pid) + "/" + name; }

int seize(pid_t pid) { return outcome(::ptrace(PTRACE_SEIZE, pid, nullptr, nullptr)); }
int ptrace_agent(const Targets& to) { return seize(to.agent); }
int ptrace_sibling(const Targets& to) { return seize(to.sibling); }

int vm_read(const Targets& to) {
  char here = 0;
  iovec local{&here, 1};
  iovec remote{nullptr, 1};
  return reached(::process_vm_readv(to.agent, &local, 1, &remote, 1, 0), EFAULT);
}
int vm_write(const Targets& to) {
  char here = 0;
  iovec local{&here, 1};
  iovec remote{nullptr, 1};
  return reached(::process_vm_writev(to.sibling, &local, 1, &remote, 1, 0), EFAULT);
}
int agent_memory(const Targets& to) { return try_open(proc_file(to.agent, "mem"), O_RDWR); }
int agent_environment(const Targets& to) { return try_read(proc_file(to.agent, "environ")); }
int agent_maps(const Targets& to) { return try_read(proc_file(to.agent, "maps")); }
int agent_descriptors(const Targets& to) { return try_list(proc_file(to.agent, "fd")); }
int agent_root(const Targets& to) { return try_open(proc_file(to.agent, "root/etc/shadow"), O_RDONLY); }
int agent_oom(const Targets& to) { return try_open(proc_file(to.agent, "oom_score_adj"), O_WRONLY); }
int sibling_memory(const Targets& to) { return try_open(proc_file(to.sibling, "mem"), O_RDONLY); }
int sibling_environment(const Targets& to) { return try_read(proc_file(to.sibling, "environ")); }
int sibling_maps(const Targets& to) { return try_read(proc_file(to.sibling, "maps")); }
int sibling_descriptors(const Targets& to) { return try_list(proc_file(to.sibling, "fd")); }
int sibling_command(const Targets& to) { return try_read(proc_file(to.sibling, "cmdline")); }
int all_processes(const Targets&) { return try_list("/proc"); }

int signal_agent(const Targets& to) { return outcome(::kill(to.agent, kHarmless)); }
int signal_sibling(const Targets& to) { return outcome(::kill(to.sibling, kHarmless)); }
int signal_group(const Targets& to) { return outcome(::kill(-::getpgid(to.agent), kHarmless)); }
int signal_everybody(const Targets&) { return outcome(::kill(-1, 0)); }
int signal_own_group(const Targets&) { return outcome(::kill(0, 0)); }
int signal_thread(const Targets& to) { return outcome(::syscall(SYS_tgkill, to.agent, to.agent, kHarmless)); }
int signal_tkill(const Targets& to) { return outcome(::syscall(SYS_tkill, to.sibling, kHarmless)); }
int signal_queue(const Targets& to) { return outcome(::sigqueue(to.agent, kHarmless, {})); }
int signal_pidfd(const Targets& to) {
  const long fd = ::syscall(SYS_pidfd_open, to.agent, 0);
  if (fd < 0) return errno;
  const int result = outcome(::syscall(SYS_pidfd_send_signal, fd, kHarmless, nullptr, 0));
  ::close(static_cast<int>(fd));
  return result;
}
int take_descriptor(const Targets& to) {
  const long fd = ::syscall(SYS_pidfd_open, to.sibling, 0);
  if (fd < 0) return errno;
  const int result = outcome(::syscall(SYS_pidfd_getfd, fd, 0, 0));
  ::close(static_cast<int>(fd));
  return result;
}
/// Asks the kernel to signal the agent when data arrives at a socket of this process.
int signal_by_socket(const Targets& to) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return errno;
  ::fcntl(ends[0], F_SETSIG, kHarmless);
  int result = outcome(::fcntl(ends[0], F_SETOWN, to.agent));
  if (result == 0) result = outcome(::fcntl(ends[0], F_SETFL, O_ASYNC | O_NONBLOCK));
  ::close(ends[0]);
  ::close(ends[1]);
  return result;
}

int priority(const Targets& to) { return outcome(::setpriority(PRIO_PROCESS, static_cast<id_t>(to.agent), 1)); }
int priority_of_user(const Targets&) { return outcome(::setpriority(PRIO_USER, 0, ::getpriority(PRIO_USER, 0))); }
int scheduler(const Targets& to) {
  sched_param none{};
  return outcome(::sched_setscheduler(to.sibling, SCHED_BATCH, &none));
}
int affinity(const Targets& to) {
  cpu_set_t first;
  CPU_ZERO(&first);
  CPU_SET(0, &first);
  return outcome(::sched_setaffinity(to.agent, sizeof first, &first));
}
int limits(const Targets& to) {
  rlimit64 now{};
  if (::prlimit64(to.agent, RLIMIT_NOFILE, nullptr, &now) != 0) return errno;
  return outcome(::prlimit64(to.agent, RLIMIT_NOFILE, &now, nullptr));
}
int disk_priority(const Targets& to) { return outcome(::syscall(SYS_ioprio_set, 1, to.sibling, (2 << 13) | 7)); }
int move_memory(const Targets& to) {
  void* page = nullptr;
  int status = 0;
  return outcome(::syscall(SYS_move_pages, to.agent, 1ul, &page, nullptr, &status, 0));
}
int compare_processes(const Targets& to) { return outcome(::syscall(SYS_kcmp, to.agent, to.sibling, KCMP_VM, 0, 0)); }
int robust_list(const Targets& to) {
  void* head = nullptr;
  std::size_t size = 0;
  return outcome(::syscall(SYS_get_robust_list, to.agent, &head, &size));
}

int outlive_agent(const Targets&) { return outcome(::prctl(PR_SET_PDEATHSIG, 0)); }
int be_dumpable(const Targets&) { return outcome(::prctl(PR_SET_DUMPABLE, 1)); }
int be_dumpable_high_bits(const Targets&) {
  return outcome(::syscall(SYS_prctl, 0x7700000000ul | PR_SET_DUMPABLE, 1, 0, 0, 0));
}
int allow_tracers(const Targets&) { return reached(::prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0), EINVAL); }
int keep_capabilities(const Targets&) { return outcome(::prctl(PR_SET_KEEPCAPS, 1)); }
int dump_core(const Targets&) {
  rlimit core{4096, 4096};
  return outcome(::setrlimit(RLIMIT_CORE, &core));
}
int more_files(const Targets&) {
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0) return errno;
  ++files.rlim_max;
  return outcome(::setrlimit(RLIMIT_NOFILE, &files));
}

}  // namespace

std::vector<Attempt> process_attempts() {
  return {{"ptrace the agent", ptrace_agent},
          {"ptrace a sibling", ptrace_sibling},
          {"process_vm_readv", vm_read},
          {"process_vm_writev", vm_write},
          {"agent's mem", agent_memory},
          {"agent's environ", agent_environment},
          {"agent's maps", agent_maps},
          {"agent's fd", agent_descriptors},
          {"agent's root", agent_root, true},
          {"agent's oom_score_adj", agent_oom},
          {"sibling's mem", sibling_memory},
          {"sibling's environ", sibling_environment},
          {"sibling's maps", sibling_maps},
          {"sibling's fd", sibling_descriptors},
          {"sibling's cmdline", sibling_command},
          {"list of processes", all_processes},
          {"signal the agent", signal_agent},
          {"signal a sibling", signal_sibling},
          {"signal the agent's group", signal_group},
          {"signal everybody", signal_everybody},
          {"signal by group 0", signal_own_group},
          {"tgkill", signal_thread},
          {"tkill", signal_tkill},
          {"sigqueue", signal_queue},
          {"pidfd_send_signal", signal_pidfd},
          {"pidfd_getfd", take_descriptor, true},
          {"signal by F_SETOWN", signal_by_socket},
          {"priority of the agent", priority},
          {"priority of the user", priority_of_user, true},
          {"scheduler of a sibling", scheduler},
          {"affinity of the agent", affinity},
          {"limits of the agent", limits},
          {"ioprio of a sibling", disk_priority},
          {"move_pages of the agent", move_memory, false, true},
          {"kcmp", compare_processes, false, true},
          {"get_robust_list of the agent", robust_list},
          {"undo PDEATHSIG", outlive_agent},
          {"undo DUMPABLE", be_dumpable},
          {"undo DUMPABLE with high bits", be_dumpable_high_bits},
          {"PR_SET_PTRACER", allow_tracers},
          {"PR_SET_KEEPCAPS", keep_capabilities},
          {"raise RLIMIT_CORE", dump_core, true},
          {"raise RLIMIT_NOFILE", more_files, true, true}};
}

}  // namespace driftd::escapes
