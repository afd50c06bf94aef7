// SPDX-License-Identifier: Apache-2.0
// Attempts to use the rights of a system administrator. The arguments are chosen so that they change nothing even if
// they succeed.
#include <fcntl.h>
#include <grp.h>
#include <linux/bpf.h>
#include <linux/capability.h>
#include <linux/perf_event.h>
#include <sys/mount.h>
#include <sys/msg.h>
#include <sys/personality.h>
#include <sys/quota.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <sys/timex.h>
#include <unistd.h>
#include <cstring>
#include <ctime>
#include <string>

#include "escapes.hpp"

namespace driftd::escapes {
namespace {

/// Closes a descriptor that a system call returned. Returns the result of the attempt.
int close_made(long fd) {
  if (fd < 0) return errno;
  ::close(static_cast<int>(fd));
  return 0;
}

int io_uring(const Targets&) {
  unsigned char parameters[120] = {};
  return close_made(::syscall(SYS_io_uring_setup, 1, parameters));
}
int bpf_map(const Targets&) {
  bpf_attr attr{};
  attr.map_type = BPF_MAP_TYPE_ARRAY;
  attr.key_size = 4;
  attr.value_size = 4;
  attr.max_entries = 1;
  return close_made(::syscall(SYS_bpf, BPF_MAP_CREATE, &attr, sizeof attr));
}
int perf(const Targets& to) {
  perf_event_attr attr{};
  attr.type = PERF_TYPE_SOFTWARE;
  attr.size = sizeof attr;
  attr.config = PERF_COUNT_SW_CPU_CLOCK;
  return close_made(::syscall(SYS_perf_event_open, &attr, to.agent, -1, -1, 0));
}
int userfault(const Targets&) { return close_made(::syscall(SYS_userfaultfd, O_CLOEXEC)); }
int add_key(const Targets&) {
  return outcome(::syscall(SYS_add_key, "user", "driftd-escape", "x", 1ul, -1 /* this thread's keyring */));
}
int read_keys(const Targets&) {
  return outcome(::syscall(SYS_keyctl, 0 /* KEYCTL_GET_KEYRING_ID */, -3 /* the session keyring */, 0));
}
int request_key(const Targets&) {
  const int error = outcome(::syscall(SYS_request_key, "user", "driftd-none", nullptr, 0));
  return error == ENOKEY ? 0 : error;
}

int load_module(const Targets&) {
  const int error = outcome(::syscall(SYS_init_module, "none", 4ul, ""));
  return error == ENOEXEC ? 0 : error;
}
int load_module_file(const Targets&) { return reached(::syscall(SYS_finit_module, -1, "", 0), EBADF); }
int unload_module(const Targets&) { return reached(::syscall(SYS_delete_module, "driftd_none", O_NONBLOCK), ENOENT); }
int kexec(const Targets&) { return reached(::syscall(SYS_kexec_load, 0ul, 1000ul, nullptr, 0ul), EINVAL); }
int reboot(const Targets&) { return reached(::syscall(SYS_reboot, 0, 0, 0, nullptr), EINVAL); }
int read_syslog(const Targets&) {
  return outcome(::syscall(SYS_syslog, 10 /* SYSLOG_ACTION_SIZE_BUFFER */, nullptr, 0));
}
int iopl_ports(const Targets&) { return outcome(::syscall(SYS_iopl, 3)); }
int personality(const Targets&) { return outcome(::personality(ADDR_NO_RANDOMIZE)); }
int set_clock(const Targets&) {
  const timespec never{0, 2'000'000'000};
  return reached(::syscall(SYS_clock_settime, CLOCK_REALTIME, &never), EINVAL);  // glibc checks the time first
}
int set_clock_high_bits(const Targets&) {
  const timespec never{0, 2'000'000'000};
  return reached(::syscall(SYS_clock_settime, 0x100000000ul | CLOCK_REALTIME, &never), EINVAL);
}
int adjust_clock(const Targets&) {
  timex none{};
  return outcome(::adjtimex(&none));
}
int host_name(const Targets&) {
  char name[256] = {};
  ::gethostname(name, sizeof name - 1);
  return outcome(::sethostname(name, std::strlen(name)));
}

int shared_memory(const Targets&) {
  const int id = ::shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0600);
  if (id < 0) return errno;
  ::shmctl(id, IPC_RMID, nullptr);
  return 0;
}
int semaphores(const Targets&) {
  const int id = ::semget(IPC_PRIVATE, 1, IPC_CREAT | 0600);
  if (id < 0) return errno;
  ::semctl(id, 0, IPC_RMID);
  return 0;
}
int messages(const Targets&) {
  const int id = ::msgget(IPC_PRIVATE, IPC_CREAT | 0600);
  if (id < 0) return errno;
  ::msgctl(id, IPC_RMID, nullptr);
  return 0;
}
int message_queue(const Targets&) {
  const long fd = ::syscall(SYS_mq_open, "driftd-escape", O_CREAT | O_RDWR, 0600, nullptr);
  if (fd >= 0) ::syscall(SYS_mq_unlink, "driftd-escape");
  return close_made(fd);
}

int mount_something(const Targets& to) {
  const std::string at = to.outside + "/inner";
  const int result = outcome(::mount("none", at.c_str(), "tmpfs", 0, nullptr));
  if (result == 0) ::umount(at.c_str());
  return result;
}
int unmount(const Targets& to) { return reached(::umount2((to.outside + "/inner").c_str(), 0), EINVAL); }
int open_file_system(const Targets&) { return close_made(::syscall(SYS_fsopen, "tmpfs", 0)); }
int clone_mount(const Targets&) {
  return close_made(::syscall(SYS_open_tree, AT_FDCWD, "/usr", 1 /* OPEN_TREE_CLONE */ | O_CLOEXEC));
}
int change_root(const Targets& to) { return outcome(::chroot(to.outside.c_str())); }
int pivot(const Targets& to) {
  const std::string at = to.outside + "/inner";
  const int error = outcome(::syscall(SYS_pivot_root, at.c_str(), at.c_str()));
  return error == EINVAL || error == EBUSY ? 0 : error;
}
int quota(const Targets&) {
  const int error = outcome(::syscall(SYS_quotactl, QCMD(Q_SYNC, USRQUOTA), nullptr, 0, nullptr));
  return error == ESRCH ? 0 : error;
}
int accounting(const Targets&) { return outcome(::syscall(SYS_acct, nullptr)); }
int swap(const Targets& to) { return reached(::syscall(SYS_swapon, (to.outside + "/victim").c_str(), 0), EINVAL); }

int set_user(const Targets&) { return outcome(::syscall(SYS_setuid, 65534)); }
int set_group(const Targets&) { return outcome(::syscall(SYS_setgid, 65534)); }
int set_all_users(const Targets&) { return outcome(::syscall(SYS_setresuid, 65534, 65534, 0)); }
int set_file_user(const Targets&) {
  ::syscall(SYS_setfsuid, 65534);
  const long now = ::syscall(SYS_setfsuid, -1);
  return now == 65534 ? 0 : EPERM;
}
int set_groups(const Targets&) { return outcome(::syscall(SYS_setgroups, 0, nullptr)); }
int set_capabilities(const Targets&) {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[2]{};
  if (::syscall(SYS_capget, &header, data) != 0) return errno;
  for (auto& half : data) half.inheritable = half.permitted;
  return outcome(::syscall(SYS_capset, &header, data));
}
int set_lsm_attribute(const Targets&) {
  return reached(::syscall(460 /* lsm_set_self_attr */, 0, nullptr, 0, 0), EINVAL);
}

}  // namespace

std::vector<Attempt> kernel_attempts() {
  return {{"io_uring_setup", io_uring, false, true},
          {"bpf", bpf_map, true, true},
          {"perf_event_open of the agent", perf, true, true},
          {"userfaultfd", userfault, true, true},
          {"add_key", add_key, false, true},
          {"keyctl", read_keys, false, true},
          {"request_key", request_key, false, true},
          {"init_module", load_module, true, true},
          {"finit_module", load_module_file, true, true},
          {"delete_module", unload_module, true, true},
          {"kexec_load", kexec, true, true},
          {"reboot", reboot, true},
          {"syslog", read_syslog, true},
          {"iopl", iopl_ports, true, true},
          {"personality", personality},
          {"clock_settime", set_clock, true},
          {"clock_settime with high bits", set_clock_high_bits, true},
          {"adjtimex", adjust_clock},
          {"sethostname", host_name, true},
          {"shmget", shared_memory, false, true},
          {"semget", semaphores, false, true},
          {"msgget", messages, false, true},
          {"mq_open", message_queue, false, true},
          {"mount", mount_something, true},
          {"umount2", unmount, true},
          {"fsopen", open_file_system, true},
          {"open_tree", clone_mount, true},
          {"chroot", change_root, true},
          {"pivot_root", pivot, true},
          {"quotactl", quota, false, true},
          {"acct", accounting, true, true},
          {"swapon", swap, true, true},
          {"setuid", set_user, true},
          {"setgid", set_group, true},
          {"setresuid", set_all_users, true},
          {"setfsuid", set_file_user, true},
          {"setgroups", set_groups, true},
          {"capset", set_capabilities},
          {"lsm_set_self_attr", set_lsm_attribute, false, true}};
}

}  // namespace driftd::escapes
